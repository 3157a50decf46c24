"use strict";
(() => {
  const folds = () => document.querySelectorAll("main details");
  const controls = document.querySelector(".controls");
  controls.hidden = false;
  controls.addEventListener("click", e => {
    const open = e.target.dataset.open;
    if (open !== undefined) folds().forEach(d => { d.open = open === "1"; });
  });

  // A link to something folded away unfolds it.
  const reveal = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    for (let x = target; x; x = x.parentElement) if (x.tagName === "DETAILS") x.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();

  // Paper does not unfold.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...folds()].filter(d => !d.open);
    closed.forEach(d => { d.open = true; });
  });
  addEventListener("afterprint", () => { closed.forEach(d => { d.open = false; }); });

  // The description of a mark that is pointed at or has the focus is shown beside it.
  const peek = document.getElementById("peek");
  let shown = null;
  const hide = () => {
    if (shown) shown.removeAttribute("aria-describedby");
    shown = null;
    peek.hidden = true;
  };
  // The lines of the source around the one that an access links to.
  const linesOf = access => {
    const link = access.querySelector("a[href^='#code-']");
    const row = link && document.getElementById(link.getAttribute("href").slice(1));
    if (!row) return [];
    const rows = [...row.parentElement.children], at = rows.indexOf(row);
    const table = document.createElement("table"), box = document.createElement("div");
    table.append(...rows.slice(Math.max(0, at - 2), at + 3).map(r => r.cloneNode(true)));
    box.className = "code scroll";
    box.append(table);
    return [box];
  };
  const show = mark => {
    const access = document.getElementById(mark.getAttribute("href").slice(1));
    if (!access || shown === mark) return;
    hide();
    shown = mark;
    const title = document.createElement("p");
    const rest = [];
    for (const child of access.children) {
      if (child.tagName === "SUMMARY") title.append(...child.cloneNode(true).childNodes);
      else rest.push(child.cloneNode(true));
    }
    peek.replaceChildren(title, ...linesOf(access), ...rest);
    peek.querySelectorAll("[id], [tabindex]").forEach(x => { x.removeAttribute("id"); x.removeAttribute("tabindex"); });
    peek.querySelectorAll("summary").forEach(x => { x.tabIndex = -1; });
    peek.hidden = false;
    mark.setAttribute("aria-describedby", "peek");
    const at = mark.querySelector("circle").getBoundingClientRect();
    const width = peek.offsetWidth, height = peek.offsetHeight;
    let left = at.right + 290, top = at.top - 10;
    if (left + width > innerWidth - 8) left = at.left - width - 14;
    if (left < 8) { left = Math.max(8, innerWidth - width - 16); top = at.bottom + 24; }
    if (top + height > innerHeight - 8) top = Math.max(8, left < at.right && left + width > at.left ? at.top - height - 12 : innerHeight - height - 8);
    peek.style.left = left + scrollX + "px";
    peek.style.top = top + scrollY + "px";
  };
  const marks = [...document.querySelectorAll("a.mark")];
  for (const mark of marks) {
    mark.addEventListener("pointerenter", () => show(mark));
    mark.addEventListener("pointerleave", e => { if (!peek.contains(e.relatedTarget) && document.activeElement !== mark) hide(); });
    mark.addEventListener("focus", () => show(mark));
    mark.addEventListener("blur", hide);
  }
  peek.addEventListener("pointerleave", () => { if (document.activeElement !== shown) hide(); });
  addEventListener("keydown", e => {
    if (e.key === "Escape") return hide();
    const i = marks.indexOf(document.activeElement);
    const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[e.key];
    if (i < 0 || !by) return;
    const next = marks[i + by];
    if (next && next.closest("figure") === marks[i].closest("figure")) next.focus();
    e.preventDefault();
  });
})();
