// Text whose contrast with its ground is below what WCAG AA asks for (4.5 to 1).
() => {
  const parse = (text) => text.match(/[\d.]+/g).map(Number);
  const linear = (value) => (value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const ground = (one) => {
    for (; one; one = one.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(one).backgroundColor);
      if (a > 0.9) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const faint = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement;
    const unseen = one.closest("svg, script, option, progress, .unseen, .skip, [disabled]");
    if (!walker.currentNode.textContent.trim() || unseen || !one.checkVisibility()) continue;
    const both = [light(parse(getComputedStyle(one).color)), light(ground(one))].sort((x, y) => y - x);
    if ((both[0] + 0.05) / (both[1] + 0.05) < 4.5) faint.add(`${one.className}: ${one.textContent.trim().slice(0, 40)}`);
  }
  return [...faint];
}
