/* The claims stand in groups, one a chapter. A press on "by verdict" groups them by whether
   they hold, what does not hold first; "by chapter" puts them back. Without scripts they
   stay by chapter. */

/**
 * Put the buttons before the list of claims, and arrange it when they are pressed.
 *
 * @param {Element} list of groups, one a chapter
 */
function arrangeFindings(list) {
  const chapters = [...list.children];
  const members = chapters.map((group) => [...group.querySelectorAll(":scope > details")]);

  /**
   * Make a group of claims; its title says how many they are.
   *
   * @param {string} title
   * @param {Element[]} items moved there
   */
  function group(title, items) {
    const section = document.createElement("section");
    section.className = "lm-group";
    const heading = document.createElement("h2");
    heading.textContent = `${title} (${items.length})`;
    section.append(heading, ...items);
    return section;
  }

  /**
   * What puts the claims into groups, and returns these, by what its button says.
   *
   * @type {Record<string, () => Element[]>}
   */
  const ways = {
    "by chapter": () => {
      chapters.forEach((each, number) => each.append(...members[number]));
      return chapters;
    },
    "by verdict": () => {
      const all = members.flat();
      const kinds = new Map([
        ["Does not hold", all.filter((each) => each.classList.contains("lm-fails"))],
        ["Holds", all.filter((each) => each.classList.contains("lm-holds"))],
      ]);
      return [...kinds].filter(([, items]) => items.length).map(([t, items]) => group(t, items));
    },
  };

  const bar = document.createElement("p");
  bar.className = "lm-sort";
  bar.append("Show them ");
  for (const [name, arrange] of Object.entries(ways)) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.setAttribute("aria-pressed", String(name === "by chapter"));
    button.addEventListener("click", () => {
      list.replaceChildren(...arrange());
      list.classList.toggle("lm-mixed", name !== "by chapter");
      for (const other of bar.querySelectorAll("button")) {
        other.setAttribute("aria-pressed", String(other === button));
      }
    });
    bar.append(button, " ");
  }
  list.before(bar);
}

const findings = document.querySelector(".lm-findings");
if (findings) arrangeFindings(findings);
