import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

const paths: Record<string, string> = {
  play: "M7 5v14l12-7z", stop: "M7 7h10v10H7z", share: "M4 12v7h16v-7M12 15V4m-4 4 4-4 4 4", book: "M5 4h12a2 2 0 0 1 2 2v14H7a2 2 0 0 1-2-2zM9 4v16M12.5 9H16",
  box: "m12 3 8 4.500v9L12 21l-8-4.500v-9zM4 7.500l8 4.500 8-4.500M12 12v9",
  exit: "M14 4h4a2 2 0 0 1 2 2v12a2 2 0 0 1-2 2h-4M10 8l-4 4 4 4m-4-4h10", plus: "M12 5v14M5 12h14",
  trash: "M5 7h14M10 7V4h4v3m-7 0 1 13h8l1-13", file: "M7 3h7l4 4v14H7zM14 3v5h4", folder: "M3 6h6l2 2h10v11H3z", up: "M12 19V6m-5 5 5-5 5 5", down: "M12 5v13m-5-5 5 5 5-5",
  more: "M5 12h.01M12 12h.01M19 12h.01", search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16 16l4.500 4.500", log: "M6 3h12v18H6zM9.500 8h5M9.500 12h5M9.500 16h3", refresh: "M20 11a8 8 0 1 0-2 6M20 5v6h-6", copy: "M9 9h11v11H9zM5 15H4V4h11v1", code: "m8 8-4 4 4 4m8-8 4 4-4 4", close: "M6 6l12 12M18 6 6 18", terminal: "m6 8 4 4-4 4m6 0h6", braces: "M9 4C5 4 8 11 4 12c4 1 1 8 5 8M15 4c4 0 1 7 5 8-4 1-1 8-5 8", chart: "M4 4v16h16M8 16v-4m4 4V8m4 8v-6", key: "M8 11a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM11 12l8-8m-3 3 3 3", link: "M13 5h6v6m0-6-9 9", layers: "m12 4 9 4.500-9 4.500-9-4.500zM4.500 12.500 12 16.500l7.500-4M4.500 16 12 20l7.500-4", sliders: "M4 8h9m6 0h1M4 16h1m6 0h9M16 5.500v5M8 13.500v5", plug: "M9 3v5m6-5v5M6 8h12v3a6 6 0 0 1-12 0zM12 17v4",
};

export function Icon({ name }: { name: string }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" width="18" height="18" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round">
      <path d={paths[name]} />
    </svg>
  );
}

export function bytes(n: number): string {
  if (n < 1000) return `${n} B`;
  for (const unit of ["KiB", "MiB", "GiB"]) {
    n /= 1024;
    if (n < 1000 || unit === "GiB") return `${n < 10 ? n.toFixed(1) : Math.round(n)} ${unit}`;
  }
  return "";
}

export function duration(ms: number): string {
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s.toFixed(s < 10 ? 1 : 0)} s`;
  const m = Math.round(s / 60);
  return m < 120 ? `${m} min` : `${Math.floor(m / 60)} h ${m % 60} min`;
}

export function download(name: string, content: Blob) {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(content);
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 60_000);
}

// useLive calls look again and again, with so many milliseconds between, while the page can be seen.
export function useLive(look: () => Promise<unknown>, deps: unknown[], every = 5000) {
  useEffect(() => {
    let timer = 0, gone = false;
    const tick = async () => {
      if (!document.hidden) await look();
      if (!gone) timer = window.setTimeout(tick, every);
    };
    void tick();
    return () => { gone = true; clearTimeout(timer); };
  }, deps);
}

// Link leads to another page of the console.
export function Link({ to, go, children, ...props }: { to: string; go(to: string): void; children: ComponentChildren; class?: string; "aria-current"?: "page" | undefined }) {
  return <a {...props} href={to} onClick={(e) => { if (e.metaKey || e.ctrlKey || e.shiftKey) return; e.preventDefault(); go(to); }}>{children}</a>;
}

// message is what a person is told of an error.
export const message = (e: unknown): string => (e instanceof Error ? e.message : String(e));

export function Notice({ kind = "error", children, onClose }: { kind?: "error" | "info"; children: ComponentChildren; onClose?: () => void }) {
  return (
    <div class={`notice ${kind}`} role={kind === "error" ? "alert" : "status"}>
      <span>{children}</span>
      {onClose && <button class="ghost icon-only" aria-label="Dismiss" onClick={onClose}><Icon name="close" /></button>}
    </div>
  );
}

// Empty says that there is nothing of what a page is for, and how that changes.
export function Empty({ icon, title, children }: { icon: string; title: string; children?: ComponentChildren }) {
  return <div class="card empty"><Icon name={icon} /><p>{title}</p>{children && <p class="muted">{children}</p>}</div>;
}

// Tile is a value with its name, and as a part of the most that it can be.
export function Tile({ name, value, more, part }: { name: string; value: ComponentChildren; more?: string; part?: number | undefined }) {
  return (
    <div class="card tile">
      <dt class="note">{name}</dt>
      <dd>{value} {more && <span class="note">{more}</span>}{part !== undefined && <svg class="meter" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect width="100" height="4" /><rect class="used" width={Math.min(100, part * 100)} height="4" /></svg>}</dd>
    </div>
  );
}

// Dialog is a modal one; Escape and a click beside it close it.
export function Dialog({ title, children, onClose }: { title: string; children: ComponentChildren; onClose(): void }) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => { ref.current!.showModal(); }, []);
  return (
    <dialog ref={ref} aria-label={title} onClose={onClose} onClick={(e) => { if (e.target === ref.current) ref.current!.close(); }}>
      <header class="row spread">
        <h2>{title}</h2>
        <button class="ghost icon-only" aria-label="Close" onClick={() => ref.current!.close()}><Icon name="close" /></button>
      </header>
      {children}
    </dialog>
  );
}

// Confirm asks before something that cannot be undone.
export function Confirm({ title, text, action, onYes, onClose }: { title: string; text: ComponentChildren; action: string; onYes(): void; onClose(): void }) {
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{text}</p>
      <div class="row end">
        <button onClick={onClose}>Cancel</button>
        <button class="danger" onClick={() => { onClose(); onYes(); }}>{action}</button>
      </div>
    </Dialog>
  );
}

export function CopyButton({ text }: { text: string }) {
  const [done, setDone] = useState(false);
  return (
    <button onClick={() => navigator.clipboard.writeText(text).then(() => { setDone(true); setTimeout(() => setDone(false), 1500); }, () => setDone(false))}>
      <Icon name="copy" /> <span aria-live="polite">{done ? "Copied" : "Copy"}</span>
    </button>
  );
}

// Tabs chooses one of several views by mouse and arrow keys.
export function Tabs({ label, names, value, onChange }: { label: string; names: string[]; value: string; onChange(name: string): void }) {
  const ref = useRef<HTMLDivElement>(null);
  const move = (e: KeyboardEvent) => {
    const by = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
    if (!by) return;
    e.preventDefault();
    const at = (names.indexOf(value) + by + names.length) % names.length;
    onChange(names[at]!);
    (ref.current!.children[at] as HTMLElement).focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} ref={ref} onKeyDown={move}>
      {names.map((n) => <button key={n} role="tab" aria-selected={n === value} tabIndex={n === value ? 0 : -1} onClick={() => onChange(n)}>{n}</button>)}
    </div>
  );
}

// Choice is one of several, of which all can be seen.
export function Choice({ label, name, options, value, onChange }: { label: string; name: string; options: readonly string[]; value: string; onChange(option: string): void }) {
  return (
    <fieldset class="choice">
      <legend>{label}</legend>
      <div class="tabs">
        {options.map((o) => (
          <label key={o}><input type="radio" class="sr-only" name={name} value={o} checked={o === value} onChange={() => onChange(o)} /><span>{o}</span></label>
        ))}
      </div>
    </fieldset>
  );
}
