// The editor and what charts are drawn with, as one module: what the studio's own scripts import from it.
export { autocompletion, acceptCompletion, closeBrackets, closeBracketsKeymap, closeCompletion, completionKeymap, completionStatus, startCompletion } from "@codemirror/autocomplete";
export { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
export { PostgreSQL, sql } from "@codemirror/lang-sql";
export { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
export { setDiagnostics } from "@codemirror/lint";
export { Annotation, Compartment, EditorSelection, EditorState, Prec } from "@codemirror/state";
export { drawSelection, EditorView, highlightActiveLine, highlightSpecialChars, keymap, lineNumbers, placeholder } from "@codemirror/view";
export { tags } from "@lezer/highlight";
export { extent } from "d3-array";
export { axisBottom, axisLeft } from "d3-axis";
export { scaleBand, scaleLinear, scalePoint, scaleUtc } from "d3-scale";
export { select } from "d3-selection";
export { area, line } from "d3-shape";
