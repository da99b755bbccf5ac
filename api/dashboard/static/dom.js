// What comes from outside becomes text or the value of an attribute here, never
// markup. The policy that the page is served with would refuse markup, too.

const svgNames = 'http://www.w3.org/2000/svg';

export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no ${id}`);
  return found;
}

/** A new element. Children are elements, or strings as text. */
export function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

export function svg(name, attributes, ...children) {
  const made = document.createElementNS(svgNames, name);
  set(made, attributes);
  made.append(...children);
  return made;
}

/** Sets attributes that differ. */
export function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
  }
}

/** Sets the text if it differs: what has not changed is not read out again. */
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Text of others, in an element that keeps its direction to itself: a name
 * written from right to left does not turn what stands beside it.
 */
export function foreign(text) {
  return element('bdi', 'foreign', text);
}

/** Makes node's children equal to lines of {text, kind}, reusing what is there. */
export function lines(node, wanted) {
  wanted.forEach((line, i) => {
    if (!node.children[i]) node.append(element('div', '', foreign('')));
    const row = node.children[i];
    const kind = line.kind ?? '';
    if (row.className !== kind) row.className = kind;
    write(row.firstChild, line.text);
  });
  while (node.children.length > wanted.length) node.lastChild.remove();
}
