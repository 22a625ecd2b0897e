/* Finds the page's views, loads what draws them when they are scrolled near, and tells
   them of a change of theme. A drawing library registers its drawers by kind of view:

     lmcourse.drawers[kind] = function (view) { ...; return { theme: function () {} }; }

   where view has root, canvas (emptied, with an id) and data. The page works from a
   folder too: classic scripts, and data in the page. */
(function () {
  "use strict";
  const own = document.currentScript;
  const folder = own.src.replace(/[^/]*$/, "");
  const libraries = JSON.parse(own.dataset.libraries);
  const lmcourse = (window.lmcourse = window.lmcourse || {});
  const loading = {};
  const drawn = [];
  lmcourse.drawers = {};
  lmcourse.folder = folder;
  lmcourse.carried = {}; // what scripts of stores bring, by address
  lmcourse.stores = JSON.parse(own.dataset.stores || "{}");

  lmcourse.isDark = () => document.documentElement.dataset.theme === "dark";

  /* The same characters, never read as a tag or an entity. */
  lmcourse.inert = (token) => token.replace(/[<&]/g, "$&\u2060");

  /* Call a function now and after every change below an element, until the next frame. */
  lmcourse.keep = function (element, change) {
    let waiting = false;
    const observer = new MutationObserver(function () {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(run);
    });
    function run() {
      waiting = false;
      observer.disconnect();
      change();
      observer.observe(element, { childList: true, subtree: true });
    }
    run();
  };

  /* One tab stop for a set of elements; arrow keys go from one to the next. */
  lmcourse.roving = function (elements, columns) {
    const list = Array.from(elements);
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
    const first = list.find((e) => e.getAttribute("tabindex") === "0") || list[0];
    list.forEach(function (element, index) {
      element.setAttribute("tabindex", element === first ? "0" : "-1");
      if (element.lmcourseRoving) return;
      element.lmcourseRoving = true;
      element.addEventListener("keydown", function (event) {
        const next = list[index + (steps[event.key] || 0)];
        if (!steps[event.key] || !next) return;
        event.preventDefault();
        list.forEach((e) => e.setAttribute("tabindex", e === next ? "0" : "-1"));
        next.focus();
      });
    });
  };

  /* Enter and the space bar do what a click does. */
  lmcourse.pressable = function (element, press) {
    if (element.lmcoursePressable) return;
    element.lmcoursePressable = true;
    element.addEventListener("keydown", function (event) {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      press(event);
    });
  };

  /* Run a script; several asked for together run in the order of asking. */
  lmcourse.run = function (address) {
    return new Promise(function (resolve, reject) {
      const script = document.createElement("script");
      script.src = folder + address;
      script.async = false;
      script.onload = function () {
        script.remove(); // its text may be large
        resolve();
      };
      script.onerror = () => reject(new Error("could not load " + script.src));
      document.head.append(script);
    });
  };

  const load = (address) => (loading[address] = loading[address] || lmcourse.run(address));

  async function draw(root, index) {
    if (root.dataset.state !== "waiting") return;
    root.dataset.state = "loading";
    const canvas = root.querySelector(".lmc-canvas");
    const stored = Array.from(canvas.childNodes);
    try {
      await Promise.all(libraries[root.dataset.library].map(load));
      const data = JSON.parse(root.querySelector(".lmc-data").textContent);
      canvas.textContent = "";
      canvas.id = "lmc-view-" + index;
      const kind = root.dataset.kind;
      drawn.push((await lmcourse.drawers[kind]({ root, canvas, data })) || {});
      root.dataset.state = "drawn";
      canvas.style.minHeight = "";
      performance.mark("lmcourse-view");
    } catch (error) {
      root.dataset.state = "failed";
      const note = document.createElement("p");
      note.className = "lmc-alt";
      note.textContent = root.getAttribute("aria-label") + " (" + error.message + ")";
      const table = root.querySelector("details.lmc-table");
      canvas.replaceChildren(...(table ? [] : stored), note);
      if (table) table.open = true;
      console.error(error);
    }
  }

  const views = Array.from(document.querySelectorAll(".lmc-view"));
  const near = new IntersectionObserver(
    function (entries) {
      entries
        .filter((entry) => entry.isIntersecting)
        .forEach(function (entry) {
          near.unobserve(entry.target);
          draw(entry.target, views.indexOf(entry.target));
        });
    },
    { rootMargin: "500px 0px" }
  );
  views.forEach((root) => near.observe(root));
  window.addEventListener("beforeprint", () => views.forEach(draw));

  new MutationObserver(function () {
    drawn.forEach((handle) => handle.theme && handle.theme());
  }).observe(document.documentElement, { attributeFilter: ["data-theme"] });
})();
