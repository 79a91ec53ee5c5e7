import { useEffect, useRef, useState } from "preact/hooks";
import { visible } from "./ansi";
import { type FileEntry, get, request, type Who } from "./api";
import { bytes, Confirm, Dialog, Icon, message, Notice } from "./ui";

const previewMost = 256 * 1024;

// Files shows the files below a sandbox's working directory. Their names and content come from inside, and are text.
export function Files({ sandbox, who }: { sandbox: string; who: Who }) {
  const [dir, setDir] = useState(".");
  const [entries, setEntries] = useState<FileEntry[] | null>(null);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState("");
  const [removing, setRemoving] = useState<FileEntry | null>(null);
  const [making, setMaking] = useState(false);
  const [shown, setShown] = useState<{ name: string; text: string } | null>(null);
  const picker = useRef<HTMLInputElement>(null);
  const current = useRef(dir);
  current.current = dir;

  const at = (name: string) => (dir === "." ? name : `${dir}/${name}`);
  const url = (path: string, of = "") => `${sandbox}/files${of}?path=${encodeURIComponent(path)}`;
  const load = async () => {
    try {
      const l = await get<{ entries: FileEntry[] }>(url(dir, "/list"));
      if (current.current !== dir) return; // another directory is looked at by now
      setEntries(l.entries.sort((a, b) => Number(b.type === "directory") - Number(a.type === "directory") || (a.name < b.name ? -1 : 1)));
      setError("");
    } catch (e) { setError(message(e)); }
  };
  useEffect(() => { setEntries(null); void load(); }, [dir, sandbox]);

  const attempt = async (what: string, f: () => Promise<unknown>) => {
    setBusy(what); setError("");
    try { await f(); await load(); } catch (e) { setError(message(e)); }
    setBusy("");
  };
  const upload = (files: Iterable<File>) => attempt("Uploading…", async () => {
    for (const f of files) await request("PUT", url(at(f.name)), { body: f, headers: { "Content-Type": "application/octet-stream" } });
  });
  const open = async (f: FileEntry) => {
    if (f.type === "directory") { setDir(at(f.name)); return; }
    if (f.size_bytes > previewMost) { setError(`${visible(f.name)} has ${bytes(f.size_bytes)}: files of up to ${bytes(previewMost)} are shown. Download it.`); return; }
    try { setShown({ name: f.name, text: await (await request("GET", url(at(f.name)))).text() }); } catch (e) { setError(message(e)); }
  };
  const segments = dir === "." ? [] : dir.split("/");
  const list = (entries ?? []).slice(0, 1000);
  return (
    <section class="card pane files" aria-label="Files" onDragOver={(e) => { if (who.write) e.preventDefault(); }} onDrop={(e) => { e.preventDefault(); if (who.write && e.dataTransfer?.files.length) void upload(e.dataTransfer.files); }}>
      <div class="toolbar row spread">
        <div class="crumbs" role="navigation" aria-label="Directory">
          <button class="ghost" onClick={() => setDir(".")}>Top</button>
          {segments.map((s, i) => <span key={i}>/ <button class="ghost" onClick={() => setDir(segments.slice(0, i + 1).join("/"))}>{visible(s)}</button></span>)}
        </div>
        <div class="row">
          <button class="ghost icon-only" aria-label="Refresh" title="Refresh" onClick={() => load()}><Icon name="refresh" /></button>
          <button class="ghost icon-only" aria-label="New directory" title="New directory" disabled={!who.write} onClick={() => setMaking(true)}><Icon name="folder" /></button>
          <button class="icon-only" aria-label="Upload" title="Upload" disabled={!who.write} onClick={() => picker.current!.click()}><Icon name="up" /></button>
          <input ref={picker} id="upload" type="file" multiple hidden aria-label="Files to upload" onChange={(e) => { if (e.currentTarget.files) void upload([...e.currentTarget.files]); e.currentTarget.value = ""; }} />
        </div>
      </div>
      {error && <div class="pad"><Notice onClose={() => setError("")}>{error}</Notice></div>}
      {busy && <p class="pad note" role="status"><span class="spinner" /> {busy}</p>}
      {entries && list.length === 0 && <div class="empty"><Icon name="folder" /><p class="muted">Nothing is here. Drop files to upload them.</p></div>}
      <ul class="entries">
        {list.map((f) => (
          <li key={f.name} class="row">
            <button class="ghost entry" onClick={() => open(f)}><Icon name={f.type === "directory" ? "folder" : f.type === "link" ? "link" : "file"} /><span class="name">{visible(f.name)}{f.link ? ` → ${visible(f.link)}` : ""}</span></button>
            <span class="note size">{f.type === "file" ? bytes(f.size_bytes) : ""}</span>
            {f.type === "file" ? <a class="button ghost icon-only" aria-label={`Download ${visible(f.name)}`} href={url(at(f.name))} download={f.name}><Icon name="down" /></a> : <span class="icon-only" />}
            <button class="ghost icon-only" aria-label={`Remove ${visible(f.name)}`} disabled={!who.write} onClick={() => setRemoving(f)}><Icon name="trash" /></button>
          </li>
        ))}
      </ul>
      {(entries?.length ?? 0) > list.length && <p class="pad note">{entries!.length - list.length} more are not shown.</p>}
      {removing && <Confirm title="Remove it?" text={<><code>{visible(removing.name)}</code>{removing.type === "directory" ? " and all that is in it are" : " is"} removed from the sandbox.</>} action="Remove it" onYes={() => attempt("Removing…", () => request("DELETE", url(at(removing.name))))} onClose={() => setRemoving(null)} />}
      {making && <NewDirectory onClose={() => setMaking(false)} onName={(name) => attempt("Making the directory…", () => request("POST", url(at(name), "/mkdir")))} />}
      {shown && <Dialog title={visible(shown.name)} onClose={() => setShown(null)}><pre class="text snippet" tabIndex={0} dir="ltr">{visible(shown.text)}</pre></Dialog>}
    </section>
  );
}

function NewDirectory({ onClose, onName }: { onClose(): void; onName(name: string): void }) {
  const [name, setName] = useState("");
  return (
    <Dialog title="New directory" onClose={onClose}>
      <form class="fields" onSubmit={(e) => { e.preventDefault(); onClose(); onName(name); }}>
        <div class="field"><label for="directory">Name</label><input id="directory" required value={name} onInput={(e) => setName(e.currentTarget.value)} /></div>
        <div class="row end"><button class="primary"><Icon name="plus" /> Create</button></div>
      </form>
    </Dialog>
  );
}
