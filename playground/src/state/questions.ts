// Questions to the person: one is shown at a time, in the order they were asked.

import { signal } from "@preact/signals";

export interface Question {
  /** Who asks. */
  from: string;
  text: string;
  yes: string;
  no: string;
  isGrave?: boolean;
  answer(isYes: boolean): void;
}

export const questions = signal<Question[]>([]);

/** Asks, and waits as long as the person likes; an abort takes the question away. */
export function askPerson(question: Omit<Question, "answer">, signal?: AbortSignal): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const asked: Question = {
      ...question,
      answer(isYes) {
        drop();
        resolve(isYes);
      },
    };
    const drop = () => {
      questions.value = questions.value.filter((other) => other !== asked);
    };
    signal?.addEventListener("abort", () => {
      drop();
      reject(new Error("the question was withdrawn"));
    });
    questions.value = [...questions.value, asked];
  });
}
