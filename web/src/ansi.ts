// What programs print, as text with colours. Nothing of it is ever taken for HTML: the result is a list of strings with the classes of their spans,
// and a class is one of a fixed set.

export interface Span { text: string; class: string }

const names = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const longest = 256; // of an escape sequence; what is longer is none

// A Parser turns a stream into spans. A sequence may come in pieces.
export class Parser {
  private color = -1;
  private flags = new Set<string>();
  private begun = "";

  reset() { this.color = -1; this.flags.clear(); this.begun = ""; }

  private get class(): string {
    const all = [...this.flags];
    if (this.color >= 0) all.push("fg-" + (this.color >= 8 ? "bright-" : "") + names[this.color % 8]);
    return all.join(" ");
  }

  parse(piece: string): Span[] {
    const text = this.begun + piece;
    this.begun = "";
    const spans: Span[] = [];
    let at = 0;
    while (at < text.length) {
      let esc = text.indexOf("\x1b", at);
      if (esc < 0) esc = text.length;
      if (esc > at) spans.push({ text: visible(text.slice(at, esc)), class: this.class });
      if (esc === text.length) break;
      const end = sequenceEnd(text, esc);
      if (end < 0) {
        if (text.length - esc <= longest) { this.begun = text.slice(esc); break; }
        spans.push({ text: "\u241b", class: "control" }); // shown as what it is
        at = esc + 1;
        continue;
      }
      const sequence = text.slice(esc, end);
      if (sequence.startsWith("\x1b[") && sequence.endsWith("m")) this.style(sequence.slice(2, -1));
      at = end; // the others move a cursor that there is not
    }
    return spans;
  }

  private style(params: string) {
    const codes = params.split(/[;:]/).map((c) => Number(c || 0));
    for (let i = 0; i < codes.length; i++) {
      const c = codes[i]!;
      if (c === 0) { this.color = -1; this.flags.clear(); }
      else if (c === 1) this.flags.add("bold");
      else if (c === 2) this.flags.add("dim");
      else if (c === 3) this.flags.add("italic");
      else if (c === 4) this.flags.add("underline");
      else if (c === 22) { this.flags.delete("bold"); this.flags.delete("dim"); }
      else if (c === 23) this.flags.delete("italic");
      else if (c === 24) this.flags.delete("underline");
      else if (c >= 30 && c <= 37) this.color = c - 30;
      else if (c >= 90 && c <= 97) this.color = c - 90 + 8;
      else if (c === 39) this.color = -1;
      else if (c === 38 || c === 48) { // of 256 colours, the first 16 are those above
        if (codes[i + 1] === 5) { const n = codes[i + 2] ?? -1; if (c === 38) this.color = n >= 0 && n < 16 ? n : -1; i += 2; }
        else if (codes[i + 1] === 2) { if (c === 38) this.color = -1; i += 4; }
      }
    }
  }
}

// sequenceEnd is the index behind the escape sequence at a place, or -1 where it has not ended.
function sequenceEnd(text: string, at: number): number {
  const kind = text[at + 1];
  if (kind === undefined) return -1;
  if (kind === "[") {
    for (let i = at + 2; i < text.length && i < at + longest; i++) {
      const c = text.charCodeAt(i);
      if (c >= 0x40 && c <= 0x7e) return i + 1;
      if (c < 0x20 || c > 0x7e) return i; // no sequence goes on like this
    }
    return -1;
  }
  if ("]P^_X".includes(kind)) { // a string, such as a title or a link
    for (let i = at + 2; i < text.length && i < at + longest; i++) {
      if (text[i] === "\x07") return i + 1;
      if (text[i] === "\x1b") return text[i + 1] === "\\" ? i + 2 : text[i + 1] === undefined ? -1 : i;
    }
    return -1;
  }
  return at + (kind >= " " && kind <= "/" ? 3 : 2);
}

// visible shows characters that could make text look like other text: controls, and those that turn the direction of writing.
export function visible(text: string): string {
  return text
    .replace(/\r\n?/g, "\n")
    // eslint-disable-next-line no-control-regex
    .replace(/[\x00-\x08\x0b\x0c\x0e-\x1f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g, (c) => `\u27e8U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}\u27e9`);
}
