import { Component, h, type FunctionComponent } from "preact";

/** A component that is drawn again only when `isSame` denies it. */
export function memo<P extends object>(
  View: FunctionComponent<P>,
  isSame: (before: P, now: P) => boolean,
): FunctionComponent<P & { key?: string | number }> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      return !isSame(this.props, next);
    }
    override render() {
      return h(View as FunctionComponent<object>, this.props);
    }
  }
  return Memo as unknown as FunctionComponent<P & { key?: string | number }>;
}
