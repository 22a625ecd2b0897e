/* ES modules on pages that may be opened as files, where browsers load none.

   A file of play/ is an ordinary ES module: tests import it as it is, and it may import
   its neighbours by name. For the site `lmbook.play.modules` makes a classic script of each:

     import { Model } from "./engine.js";     lmcourse.define("client.js", function (need) {
     export function open() { ... }             const { Model } = need("engine.js"); ...
                                                return { open }; });

   `need` runs a module when it is first asked for. A page loads a view's modules when the
   view is scrolled near. The text of a function is known to the browser, so a worker starts
   from a blob of these very functions: `worker` below. */
(() => {
  /* Give `scope` the functions define and need. A worker runs this one again. */
  function registry(scope) {
    scope.factories = {};
    scope.made = {};
    scope.define = (name, factory) => (scope.factories[name] ??= factory);
    scope.need = (name) => {
      if (!scope.factories[name]) throw new Error(`no module ${name} was loaded`);
      scope.made[name] ??= scope.factories[name](scope.need);
      return scope.made[name];
    };
  }

  window.lmcourse ??= {};
  const lmcourse = window.lmcourse;
  registry(lmcourse);

  /* Start a worker that has the modules of this page, and calls `serve`, which one of them
     exports under this name, with its global scope. */
  lmcourse.worker = (serve) => {
    const { made, factories } = lmcourse;
    const name = Object.keys(made).find((module) => made[module].serve === serve);
    const parts = [`"use strict"; const lmcourse = {}; (${registry})(lmcourse);\n`];
    for (const [module, factory] of Object.entries(factories))
      parts.push(`lmcourse.define(${JSON.stringify(module)}, ${factory});\n`);
    parts.push(`lmcourse.need(${JSON.stringify(name)}).serve(self);\n`);
    const address = URL.createObjectURL(new Blob(parts, { type: "text/javascript" }));
    const worker = new Worker(address);
    URL.revokeObjectURL(address);
    return worker;
  };
})();
