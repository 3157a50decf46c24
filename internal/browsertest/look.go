package browsertest

// Pale lists the texts whose contrast to their background is below 4.5 (WCAG 2.1, 1.4.3).
func (b *Browser) Pale() []string {
	b.T.Helper()
	var list []string
	b.Eval(paleText, &list)
	return list
}

const paleText = `(() => {
	const light = c => { const v = c.map(x => (x /= 255) <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4); return .2126 * v[0] + .7152 * v[1] + .0722 * v[2]; };
	const rgb = text => { const m = text.match(/[\d.]+/g).map(Number); return m.length > 3 && m[3] === 0 ? null : m.slice(0, 3); };
	const background = e => {
		if (e instanceof SVGTextElement) {
			const box = e.getBoundingClientRect();
			for (const s of [...e.parentElement.children].reverse()) {
				if (!(s instanceof SVGRectElement) && !(s instanceof SVGCircleElement)) continue;
				const at = s.getBoundingClientRect(), c = rgb(getComputedStyle(s).fill === "none" ? "rgba(0, 0, 0, 0)" : getComputedStyle(s).fill);
				if (c && at.left <= box.left + 2 && at.right >= box.right - 2 && at.top <= box.top + 6 && at.bottom >= box.bottom - 6) return c;
			}
		}
		for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c) return c; }
		return [255, 255, 255];
	};
	const list = new Set();
	for (const e of document.body.querySelectorAll("*")) {
		if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.getClientRects().length || ["SCRIPT", "title"].includes(e.tagName)) continue;
		const style = getComputedStyle(e), color = rgb(e instanceof SVGElement ? style.fill : style.color);
		const [a, c] = [light(color), light(background(e))].sort((x, y) => y - x);
		if ((a + .05) / (c + .05) < 4.5) list.add(e.tagName + "." + (e.getAttribute("class") || "") + ": " + e.textContent.slice(0, 40));
	}
	return [...list];
})()`

// Wide lists what makes the page wider than its window.
func (b *Browser) Wide() []string {
	b.T.Helper()
	var list []string
	b.Eval(wideParts, &list)
	return list
}

const wideParts = `(() => {
	if (document.documentElement.scrollWidth <= innerWidth) return [];
	return [...document.querySelectorAll("main *, header *, nav *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll"))
		.slice(0, 3).map(e => e.tagName + "." + e.className + ": " + e.textContent.slice(0, 60)).concat("scrolls to " + document.documentElement.scrollWidth);
})()`
