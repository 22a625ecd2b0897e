/* A view of what the page can run: each model that it may load, and how large it is. */

export function mount(element, data, context) {
  const list = document.createElement("ul");
  for (const [name, about] of Object.entries(context.stores)) {
    const item = document.createElement("li");
    const size = (about.bytes / 1e6).toFixed(1);
    item.textContent = (data.names[name] || name) + ": " + size + " MB, loaded when used";
    list.append(item);
  }
  element.append(list);
}
