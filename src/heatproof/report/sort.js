// The one script: a click on a column's head sorts its table. Without it everything can still be read.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button")?.addEventListener("click", () => {
    // Words from A first (and the numbers in them by size: k2 before k10), numbers from their better end; a further
    // click turns the order.
    const numeric = head.classList.contains("num");
    const sorted = head.getAttribute("aria-sort");
    const down = sorted ? sorted === "ascending" : numeric && !("lower" in head.dataset);
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const worth = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent.trim();
    // Numbers as they are typeset: a true minus, thin spaces, an interval's bracket.
    const value = (text) => parseFloat(text.replaceAll("\u2212", "-").replaceAll(/[\u202f[]/g, ""));
    const compare = (a, b) => {
      const [x, y] = [worth(a), worth(b)];
      const [p, q] = [value(x), value(y)];
      if (numeric) {
        if (isNaN(p) || isNaN(q)) return isNaN(p) - isNaN(q);
        return down ? q - p : p - q;
      }
      return (down ? -1 : 1) * x.localeCompare(y, "en", { numeric: true });
    };
    const body = table.tBodies[0];
    body.append(...[...body.rows].sort(compare));
  }));
}
