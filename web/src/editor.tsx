import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { cpp } from "@codemirror/lang-cpp";
import { go } from "@codemirror/lang-go";
import { java } from "@codemirror/lang-java";
import { javascript } from "@codemirror/lang-javascript";
import { python } from "@codemirror/lang-python";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { r } from "@codemirror/legacy-modes/mode/r";
import { ruby } from "@codemirror/legacy-modes/mode/ruby";
import { shell } from "@codemirror/legacy-modes/mode/shell";
import { Annotation, Compartment, EditorState, type Extension, Prec } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { tags as t } from "@lezer/highlight";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

const languages: Record<string, () => Extension> = {
  python: () => [python(), indentUnit.of("    ")],
  javascript: () => javascript(),
  typescript: () => javascript({ typescript: true }),
  java: () => [java(), indentUnit.of("    ")],
  cpp: () => cpp(),
  c: () => cpp(),
  go: () => [go(), indentUnit.of("\t")],
  r: () => StreamLanguage.define(r),
  ruby: () => StreamLanguage.define(ruby),
  bash: () => StreamLanguage.define(shell),
};

const theme = EditorView.theme({
  "&": { backgroundColor: "transparent", color: "var(--text)", fontSize: "0.875rem", height: "100%" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6" },
  ".cm-content": { caretColor: "var(--accent-text)", padding: "12px 0" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--muted)", border: "none", paddingLeft: "6px" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLine, &.cm-focused .cm-activeLineGutter": { backgroundColor: "var(--line)" },
  ".cm-cursor": { borderLeftColor: "var(--accent-text)", borderLeftWidth: "2px" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "var(--selection) !important" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--selection)", color: "inherit" },
});

const colors = HighlightStyle.define([
  { tag: [t.keyword, t.modifier, t.operatorKeyword, t.controlKeyword, t.definitionKeyword, t.moduleKeyword], color: "var(--code-keyword)" },
  { tag: [t.string, t.special(t.string), t.regexp, t.character], color: "var(--code-string)" },
  { tag: [t.number, t.bool, t.null, t.atom, t.self], color: "var(--code-number)" },
  { tag: [t.comment, t.lineComment, t.blockComment], color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [t.function(t.variableName), t.function(t.propertyName), t.function(t.definition(t.variableName)), t.standard(t.variableName)], color: "var(--code-function)" },
  { tag: [t.typeName, t.className, t.namespace, t.tagName], color: "var(--code-type)" },
  { tag: [t.meta, t.annotation, t.processingInstruction], color: "var(--code-number)" },
]);

// given marks a change that came by the props: telling of it would set what may be out of date by then, and so on without end.
const given = Annotation.define<true>();

export interface EditorProps {
  value: string; language: string; label: string; onChange(code: string): void; onRun(): void; autofocus?: boolean; runAndNext?: boolean;
}

// Editor edits code. It is in a shadow root, where the editor's style sheets are constructed ones, which the page's policy of styles allows.
export function Editor(props: EditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const language = useRef(new Compartment());

  useEffect(() => {
    const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: "open" });
    const run = () => { latest.current.onRun(); return true; };
    view.current = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: latest.current.value,
        extensions: [
          Prec.highest(keymap.of([{ key: "Mod-Enter", run }, { key: "Shift-Enter", run: () => (latest.current.runAndNext ? run() : false) }])),
          lineNumbers(), highlightActiveLine(), highlightActiveLineGutter(), history(), drawSelection(), indentOnInput(), bracketMatching(),
          // Escape, then Tab leaves the editor: the keymap's own way out for the keyboard.
          keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
          EditorView.lineWrapping, theme, syntaxHighlighting(colors), language.current.of(languages[latest.current.language]?.() ?? []),
          EditorView.contentAttributes.of({ "aria-label": latest.current.label, "aria-description": "Escape, then Tab leaves the editor", spellcheck: "false", autocorrect: "off", autocapitalize: "off" }),
          EditorView.updateListener.of((u) => { if (u.docChanged && !u.transactions.some((t) => t.annotation(given))) latest.current.onChange(u.state.doc.toString()); }),
        ],
      }),
    });
    if (latest.current.autofocus) view.current.focus();
    return () => { view.current?.destroy(); view.current = null; };
  }, []);
  useEffect(() => {
    view.current?.dispatch({ effects: language.current.reconfigure(languages[props.language]?.() ?? []) });
  }, [props.language]);
  useLayoutEffect(() => {
    const v = view.current;
    if (v && v.state.doc.toString() !== props.value) v.dispatch({ changes: { from: 0, to: v.state.doc.length, insert: props.value }, annotations: given.of(true) });
  }, [props.value]);
  return <div class="editor" ref={host} />;
}
