/* ES modules on pages that may be opened as files, where browsers load none.

   A file of play/ is an ordinary ES module: tests import it as it is, and it may import
   its neighbours by name. For the site `lmbook.play.modules` makes a classic script of each:

     import { Model } from "./engine.js";     lmcourse.define("client.js", ["engine.js"],
     export function open() { ... }             function (need) { const { Model } =
                                                need("engine.js"); ... return { open }; });

   `need` runs a module when it is first asked for. A page loads a view's modules, in
   order, when the view is scrolled near. The text of a function is known to the browser,
   so a worker starts from a blob of these very functions: `worker` below. */
(function () {
  "use strict";

  /* Give `scope` the functions define, need, home and source. A worker runs this one again. */
  function registry(scope) {
    const known = {}, made = {};

    scope.define = (name, needs, factory) => (known[name] = known[name] || { needs, factory });

    scope.need = function (name) {
      if (!known[name]) throw new Error("no module " + name + " was loaded");
      made[name] = made[name] || known[name].factory(scope.need);
      return made[name];
    };

    /* The module that exports a value, and under what name. */
    scope.home = function (value) {
      for (const [module, all] of Object.entries(made))
        for (const [name, own] of Object.entries(all)) if (own === value) return [module, name];
      throw new Error("no module exports what a worker is to run");
    };

    /* The definitions of a module and of all that it needs, as text. */
    scope.source = function (name, seen = new Set()) {
      if (seen.has(name)) return "";
      seen.add(name);
      const { needs, factory } = known[name];
      const before = needs.map((other) => scope.source(other, seen)).join("");
      const own = [name, needs].map((value) => JSON.stringify(value)).join(", ");
      return before + "lmcourse.define(" + own + ", " + factory + ");\n";
    };
  }

  const lmcourse = (window.lmcourse = window.lmcourse || {});
  registry(lmcourse);

  /* Start a worker that calls a function which a module exports, with its global scope. */
  lmcourse.worker = function (serve) {
    const [module, name] = lmcourse.home(serve);
    const begin = '"use strict"; const lmcourse = {}; (' + registry + ")(lmcourse);\n";
    const end = "lmcourse.need(" + JSON.stringify(module) + ")." + name + "(self);\n";
    const text = [begin, lmcourse.source(module), end];
    const address = URL.createObjectURL(new Blob(text, { type: "text/javascript" }));
    const worker = new Worker(address);
    URL.revokeObjectURL(address);
    return worker;
  };
})();
