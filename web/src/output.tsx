import { useEffect, useRef, useState } from "preact/hooks";
import { Parser } from "./ansi";
import { bytes, download } from "./ui";

// What is kept in the page of a program's output: its end. All of it can be saved.
const shownMost = 256 * 1024;
const pieceMost = 16 * 1024;

// An Output collects what a program writes, for an OutputView.
export class Output {
  private all: { stream: string; text: string }[] = [];
  size = 0;
  listener: (() => void) | null = null;
  private taken = 0; // pieces that the view has

  push(stream: string, text: string) {
    const last = this.all.at(-1);
    if (last?.stream === stream && this.all.length > this.taken) last.text += text; // a program can write a great many small pieces
    else this.all.push({ stream, text });
    this.size += text.length;
    this.listener?.();
  }

  // fresh are the pieces that the view does not have yet.
  fresh(): { stream: string; text: string }[] {
    const out = this.all.slice(this.taken);
    this.taken = this.all.length;
    return out;
  }

  rewind() { this.taken = 0; }

  text(): string { return this.all.map((p) => p.text).join(""); }
}

// OutputView shows an Output as it grows: once a frame, and no more than a bounded end of it, so that no program can make the page slow.
export function OutputView({ output, label }: { output: Output; label: string }) {
  const pre = useRef<HTMLPreElement>(null);
  const [left, setLeft] = useState(0);
  useEffect(() => {
    const el = pre.current!;
    const parsers: Record<string, Parser> = { stdout: new Parser(), stderr: new Parser() };
    const sizes: number[] = []; // of the pieces in the page
    let shown = 0, dropped = 0, frame = 0;
    el.textContent = "";
    output.rewind();
    const draw = () => {
      frame = 0;
      const pieces = output.fresh();
      let total = pieces.reduce((n, p) => n + p.text.length, 0);
      const follow = el.scrollHeight - el.scrollTop - el.clientHeight < 24;
      for (const { stream, text } of pieces) {
        const skip = Math.min(text.length, Math.max(0, total - shownMost)); // it would be dropped again at once
        total -= text.length;
        dropped += skip;
        if (skip) parsers[stream]!.reset();
        for (let at = skip, end; at < text.length; at = end) {
          end = Math.min(at + pieceMost, text.length);
          if (end < text.length && (text.charCodeAt(end) & 0xfc00) === 0xdc00) end++; // between the halves of a character
          const part = text.slice(at, end);
          const span = document.createElement("span");
          span.className = stream;
          for (const s of parsers[stream]!.parse(part)) {
            if (!s.class) { span.append(s.text); continue; }
            const inner = document.createElement("span");
            inner.className = s.class;
            inner.textContent = s.text;
            span.append(inner);
          }
          el.append(span);
          sizes.push(part.length);
          shown += part.length;
        }
      }
      while (shown > shownMost && sizes.length > 1) {
        el.firstChild!.remove();
        dropped += sizes[0]!;
        shown -= sizes.shift()!;
      }
      setLeft(dropped);
      if (follow) el.scrollTop = el.scrollHeight;
    };
    const schedule = () => { if (!frame) frame = requestAnimationFrame(draw); };
    output.listener = schedule;
    schedule();
    return () => { output.listener = null; cancelAnimationFrame(frame); };
  }, [output]);
  return (
    <div class="output">
      {left > 0 && (
        <p class="note">
          Only the end is shown: {bytes(left)} before it are left out. <button class="link" onClick={() => download("output.txt", new Blob([output.text()]))}>Save all of it</button>
        </p>
      )}
      <pre ref={pre} dir="ltr" tabIndex={0} role="region" aria-label={label} />
    </div>
  );
}
