// The page's policy takes styles from this server's files and from script, and neither <style> elements nor style attributes, which xterm uses. build.mjs has
// it call these in place of them: they do the same by the CSSOM, which the policy allows.

// styleElement stands for a <style> element: what is its text is a style sheet of the page while it is there.
export function styleElement(): HTMLElement {
  const css = new CSSStyleSheet(), element = document.createElement("span");
  element.hidden = true;
  Object.defineProperty(element, "textContent", { set: (text: string) => css.replaceSync(text) });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((s) => s !== css);
    HTMLElement.prototype.remove.call(element);
  };
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, css];
  return element;
}

// setStyle sets a style attribute.
export function setStyle(element: HTMLElement, style: string) { element.style.cssText = style; }
