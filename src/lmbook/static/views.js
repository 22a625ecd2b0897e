/* Finds the page's views, loads what draws them when they are scrolled near, and tells
   them of a change of theme. A view's module exports a function of the view's kind, or
   `mount`:

     export function mount(element, data, context) { ...; return { theme() {} }; }

   element   the view's place, emptied, with an id; until then it shows the stored state.
   data      what the Python side gave.
   context   root: the whole view; the rest is for store.js, which reads vocabularies, and
             client.js, which runs models.

   It may be async. What it returns may have `theme`, called when the theme changes. If it
   throws, what was there comes back, with a note. The page works from a folder too:
   classic scripts, and data in the page. */
(() => {
  const own = document.currentScript;
  const folder = own.src.replace(/[^/]*$/, "");
  const libraries = JSON.parse(own.dataset.libraries);
  window.lmcourse ??= {}; // `modules.js` adds to it
  const lmcourse = window.lmcourse;
  const loading = {};
  const drawn = [];

  /* Run a script; several asked for together run in the order of asking. */
  function run(address) {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = folder + address;
      script.async = false;
      script.onload = () => {
        script.remove(); // its text may be large
        resolve();
      };
      script.onerror = () => reject(new Error(`could not load ${script.src}`));
      document.head.append(script);
    });
  }

  const load = (address) => (loading[address] = loading[address] || run(address));
  Object.assign(lmcourse, {
    stores: JSON.parse(own.dataset.stores || "{}"),
    carried: {}, // what scripts of stores bring, by address
    ...{ folder, run },
  });

  async function draw(root, index) {
    if (root.dataset.state !== "waiting") return;
    root.dataset.state = "loading";
    const canvas = root.querySelector(".lmc-canvas");
    const stored = Array.from(canvas.childNodes);
    const { kind, module } = root.dataset;
    try {
      await Promise.all(libraries[kind].map(load));
      const data = JSON.parse(root.querySelector(".lmc-data").textContent);
      canvas.textContent = "";
      canvas.id = `lmc-view-${index}`;
      // Libraries would take the wheel for themselves: here it scrolls the page.
      canvas.addEventListener("wheel", (event) => event.stopPropagation(), true);
      const { [kind]: named, mount = named } = lmcourse.need(`${module}.js`);
      drawn.push((await mount(canvas, data, { ...lmcourse, root })) || {});
      root.dataset.state = "drawn";
      canvas.style.minHeight = "";
      performance.mark("lmcourse-view");
    } catch (error) {
      root.dataset.state = "failed";
      const note = document.createElement("p");
      note.className = "lmc-alt";
      note.textContent = `${root.getAttribute("aria-label")} (${error.message})`;
      canvas.replaceChildren(...stored.filter((node) => !node.matches?.(".lmc-alt")), note);
      root.querySelectorAll("details.lmc-table").forEach((table) => (table.open = true));
      console.error(error);
    }
  }

  const views = Array.from(document.querySelectorAll(".lmc-view"));
  const near = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries)
        if (isIntersecting) {
          near.unobserve(target);
          draw(target, views.indexOf(target));
        }
    },
    { rootMargin: "500px 0px" },
  );
  views.forEach((root) => near.observe(root));
  window.addEventListener("beforeprint", () => views.forEach(draw));

  new MutationObserver(() => {
    drawn.forEach((handle) => handle.theme?.());
  }).observe(document.documentElement, { attributeFilter: ["data-theme"] });
})();
