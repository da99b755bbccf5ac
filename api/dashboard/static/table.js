// A table whose rows stay the same elements while their figures change, so that
// neither a reader's place nor a screen reader's is lost.

import { byId, element } from './dom.js';

/**
 * Columns are {id, sort, fill}: sort gives what a row is ordered by, fill writes a
 * row's cell and may keep what it made in an object of that row.
 */
export class Table {
  constructor(table, key, columns) {
    this.body = table.tBodies[0];
    this.none = byId(`${table.id}-none`);
    this.nothing = this.none.textContent;
    this.key = key;
    this.columns = columns;
    this.rows = new Map();
    this.given = [];
    this.order = null;
    this.heads = [...table.tHead.rows[0].cells];
    for (const head of this.heads) {
      const button = head.querySelector('button');
      button.addEventListener('click', () => this.turn(button.dataset.column));
    }
  }

  /** The first time the largest figures come first, and names from A. */
  turn(id) {
    const column = this.columns.find((one) => one.id === id);
    const first = column.names ? 1 : -1;
    if (this.order?.column !== column) this.order = { column, way: first };
    else if (this.order.way === first) this.order = { column, way: -first };
    else this.order = null;
    this.columns.forEach((one, i) => {
      if (this.order?.column !== one) this.heads[i].removeAttribute('aria-sort');
      else this.heads[i].setAttribute('aria-sort', this.order.way > 0 ? 'ascending' : 'descending');
    });
    this.show(this.given, this.matches);
  }

  /** Shows those of the rows that match. className is a row's. */
  show(rows, matches = () => true) {
    this.given = rows;
    this.matches = matches;
    const shown = rows.filter(matches);
    if (this.order) {
      const { column, way } = this.order;
      shown.sort((a, b) => way * compare(column.sort(a), column.sort(b)));
    }
    const kept = new Map(shown.map((row) => [this.key(row), row]));
    for (const [key, line] of this.rows) {
      if (kept.has(key)) continue;
      line.tr.remove();
      this.rows.delete(key);
    }
    let next = this.body.firstElementChild;
    for (const [key, row] of kept) {
      const line = this.rows.get(key) ?? this.make(key);
      if (line.tr === next) next = next.nextElementSibling;
      else this.body.insertBefore(line.tr, next);
      this.columns.forEach((column, i) => column.fill(line.tr.cells[i], row, line.kept));
      const kind = this.kind?.(row) ?? '';
      if (line.tr.className !== kind) line.tr.className = kind;
    }
    this.none.hidden = kept.size > 0;
    this.none.textContent = rows.length > 0 ? 'Nothing here has that in it.' : this.nothing;
    return kept.size;
  }

  make(key) {
    const tr = element('tr', '');
    tr.setAttribute('role', 'row');
    this.heads.forEach((head) => {
      const td = element('td', head.className);
      td.setAttribute('role', 'cell');
      td.dataset.title = head.textContent;
      tr.append(td);
    });
    const line = { tr, kept: {} };
    this.rows.set(key, line);
    return line;
  }
}

function compare(a, b) {
  if (typeof a === 'string') return a.localeCompare(b);
  return a - b;
}
