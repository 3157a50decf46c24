"use strict";
(() => {
  // Days are selected by drawing over their bars. Without this script each bar is a link, and the
  // form below takes any two days.
  const bars = document.querySelector(".bars"), form = document.querySelector(".brush");
  if (!bars || !form) return;
  document.querySelector(".brush-hint").hidden = false;
  const links = [...bars.querySelectorAll("a")];
  const at = e => {
    const box = bars.getBoundingClientRect();
    return Math.min(links.length - 1, Math.max(0, Math.floor((e.clientX - box.left) / box.width * links.length)));
  };
  let first = -1, last = -1;
  const draw = () => {
    const low = Math.min(first, last), high = Math.max(first, last);
    links.forEach((a, i) => a.classList.toggle("drawn", first >= 0 && low !== high && i >= low && i <= high));
  };
  bars.addEventListener("dragstart", e => e.preventDefault());
  bars.addEventListener("pointerdown", e => {
    if (e.button !== 0) return;
    first = last = at(e);
  });
  addEventListener("pointermove", e => {
    if (first < 0) return;
    last = at(e);
    draw();
  });
  addEventListener("pointercancel", () => { first = last = -1; draw(); });
  let drawn = false;
  addEventListener("pointerup", () => {
    if (first < 0) return;
    drawn = first !== last;
    const low = Math.min(first, last), high = Math.max(first, last);
    first = last = -1;
    if (!drawn) return;
    form.elements.from.value = links[low].dataset.from;
    form.elements.to.value = links[high].dataset.to;
    form.requestSubmit();
    setTimeout(() => { drawn = false; }, 0);
  });
  // The bar under the pointer is not followed after drawing.
  bars.addEventListener("click", e => { if (drawn) e.preventDefault(); }, true);
})();
