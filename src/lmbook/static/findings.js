/* The table of claims is sorted by the column whose name is pressed, and turned round by a
   second press; what is missing stays last. In n and Interval the first number counts. */
(function () {
  "use strict";
  function key(row, column) {
    const text = row.cells[column].textContent.trim();
    if (!["n", "Interval"].includes(row.cells[column].dataset.label)) return text;
    const found = text.replace(/,(?=\d)/g, "").replace(/\u2212/g, "-").match(/-?\d*\.?\d+/);
    return found ? Number(found[0]) : "–";
  }
  function compare(a, b, sign) {
    if (a === "–" || b === "–") return (a === "–") - (b === "–");
    if (typeof a === "number" && typeof b === "number") return sign * (a - b);
    return sign * String(a).localeCompare(b, "en", { numeric: true });
  }

  for (const table of document.querySelectorAll("table.lm-findings")) {
    const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", function () {
        const up = head.ariaSort !== "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.ariaSort = up ? "ascending" : "descending";
        const rows = [...body.rows].map(row => [key(row, column), row]);
        rows.sort((a, b) => compare(a[0], b[0], up ? 1 : -1));
        body.append(...rows.map(pair => pair[1]));
      });
    });
  }
})();
