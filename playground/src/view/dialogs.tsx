// Questions to the person, and the settings.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import * as app from "../state/app.ts";
import { isSettingsOpen } from "../state/layout.ts";
import { questions, type Question } from "../state/questions.ts";
import * as settings from "../state/settings.ts";
import { pageTools } from "../tools/index.ts";
import { Icon } from "./icon.tsx";

function Modal({ label, role, onClose, children }: { label: string; role?: "alertdialog"; onClose(): void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  // Closed while it still stands in the page: that gives the focus back to where it was.
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  const cancel = (event: Event) => {
    event.preventDefault();
    onClose();
  };
  return (
    <dialog ref={dialog} aria-labelledby={label} {...(role ? { role } : {})} onCancel={cancel}>
      {children}
    </dialog>
  );
}

export function Questions() {
  const [first] = questions.value;
  return first ? <QuestionDialog key={first.text} question={first} /> : null;
}

function QuestionDialog({ question }: { question: Question }) {
  const { from, text, yes, no, isGrave, answer } = question;
  return (
    <Modal label="question-title" role="alertdialog" onClose={() => answer(false)}>
      <div class="question">
        <h2 id="question-title">{from}</h2>
        <p>{text}</p>
        <div class="dialog-row">
          <button class="plain" autofocus onClick={() => answer(false)}>{no}</button>
          <button class={isGrave ? "danger" : "primary"} onClick={() => answer(true)}>{yes}</button>
        </div>
      </div>
    </Modal>
  );
}

export function Settings() {
  if (!isSettingsOpen.value) return null;
  const close = () => (isSettingsOpen.value = false);
  const save = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const text = (name: string) => String(form.get(name) ?? "").trim();
    settings.owner.value = text("owner");
    settings.token.value = text("token");
    settings.prefix.value = text("prefix");
    settings.theme.value = text("theme") as settings.Theme;
    settings.disabledTools.value = pageTools.map(({ name }) => name).filter((name) => !form.has(`tool-${name}`));
    close();
    void app.connect();
  };
  return (
    <Modal label="settings-title" onClose={close}>
      <form class="settings" onSubmit={save}>
        <header>
          <h2 id="settings-title">Settings</h2>
          <button type="button" class="icon-button" aria-label="Close" onClick={close}><Icon name="close" /></button>
        </header>
        <Field name="owner" label="Owner" value={settings.owner.value} hint="Whose threads these are: resourceId on the wire. Empty: whoever the token says." />
        <Field name="token" label="Token" isSecret value={settings.token.value} hint="Sent as a bearer token. Kept in this browser only." />
        <Field name="prefix" label="Path of the API" value={settings.prefix.value} hint={`PREFIX of the server; built for “${settings.builtPrefix}”.`} />
        <fieldset class="segments wide">
          <legend>Theme</legend>
          {(["system", "light", "dark"] as const).map((value) => (
            <label key={value}>
              <input type="radio" name="theme" value={value} defaultChecked={settings.theme.value === value} />
              <span>{value}</span>
            </label>
          ))}
        </fieldset>
        <fieldset class="tools">
          <legend>Tools this page offers</legend>
          {pageTools.map(({ name, description }) => (
            <label key={name}>
              <input type="checkbox" name={`tool-${name}`} defaultChecked={!settings.disabledTools.value.includes(name)} />
              <span><code>{name}</code> <small>{description}</small></span>
            </label>
          ))}
        </fieldset>
        <div class="dialog-row">
          {app.service.value && <small>{app.service.value.name} {app.service.value.version}, level {app.service.value.conformanceLevel}</small>}
          <span class="spacer" />
          <button type="button" class="plain" onClick={close}>Cancel</button>
          <button class="primary">Save</button>
        </div>
      </form>
    </Modal>
  );
}

interface FieldProps {
  name: string;
  label: string;
  value: string;
  hint: string;
  isSecret?: boolean;
}

function Field({ name, label, value, hint, isSecret = false }: FieldProps) {
  const common = { id: `setting-${name}`, name, defaultValue: value, spellcheck: false, "aria-describedby": `hint-${name}` };
  return (
    <div class="field">
      <label for={common.id}>{label}</label>
      {isSecret ? <input type="password" autocomplete="off" {...common} /> : <input autocomplete="off" {...common} />}
      <small id={`hint-${name}`}>{hint}</small>
    </div>
  );
}
