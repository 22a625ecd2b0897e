/* Views that run in the page: their module's function mount(element, data, context).

   element   the view's place, emptied; until then it shows the stored state.
   data      what the Python side gave.
   context   root: the whole view; isDark(): the theme; the rest is for store.js,
             which reads vocabularies, and client.js, which runs models.

   mount may be async, and may return { theme() }, called when the theme changes. If it
   throws, the stored state comes back, with a note. */
(function () {
  "use strict";

  lmcourse.drawers.play = function (view) {
    const { isDark, folder, stores, run, carried, worker } = lmcourse;
    const module = lmcourse.need(view.root.dataset.module + ".js");
    const own = { folder, stores, run, carried, worker };
    return module.mount(view.canvas, view.data, { root: view.root, isDark, ...own });
  };
})();
