import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

/** A component whose module is loaded when it is shown for the first time. */
export function lazily<Props extends object>(load: () => Promise<{ default: ComponentType<Props> }>): ComponentType<Props> {
  let loaded: ComponentType<Props> | null = null;
  return function Lazy(props: Props) {
    const [Shown, setShown] = useState<ComponentType<Props> | null>(() => loaded);
    useEffect(() => {
      if (Shown !== null) return;
      load().then(
        (module) => {
          loaded = module.default;
          setShown(() => module.default);
        },
        () => undefined, // the banner of the frame says that the host does not answer
      );
    }, []);
    return Shown === null ? null : <Shown {...props} />;
  };
}
