/* On every page. The theme gives a tab stop to what scrolls sideways, as wide as it is when
   the page is loaded or resized; what is folded then has no width. Look again when it is
   unfolded. A notebook is kept, not opened: some servers call it text. */
(function () {
  "use strict";
  const again = () => window.dispatchEvent(new Event("resize"));
  document.addEventListener("toggle", again, true);
  document.addEventListener("click", function (event) {
    if (event.target.closest(".admonition-title, .toggle-button")) again();
  });
  document.addEventListener("DOMContentLoaded", function () {
    for (const link of document.querySelectorAll('a[href^="notebooks/"]')) {
      link.download = "";
      link.removeAttribute("target");
    }
  });
})();
