// What a person has chosen for this browser.

export const themes = ["system", "light", "dark"] as const;
export const zones = ["local", "UTC"] as const;

interface Prefs { theme: typeof themes[number]; language: string; zone: typeof zones[number] }

const among = <T extends string>(all: readonly T[], name: string): T => all.find((v) => v === localStorage.getItem(name)) ?? all[0]!;

// prefs is what is chosen, or else what most want.
export function prefs(): Prefs {
  return { theme: among(themes, "theme"), language: localStorage.getItem("language") ?? "python", zone: among(zones, "zone") };
}

export function choose(name: keyof Prefs, value: string) {
  localStorage.setItem(name, value);
  applyTheme();
}

const systemDark = matchMedia("(prefers-color-scheme: dark)");

function applyTheme() {
  const { theme } = prefs();
  document.documentElement.dataset.theme = theme === "system" ? (systemDark.matches ? "dark" : "light") : theme;
}
applyTheme();
systemDark.addEventListener("change", applyTheme);

// time is a date and time as a person wants it.
export const time = (at: string | number): string => new Date(at).toLocaleString(undefined, prefs().zone === "UTC" ? { dateStyle: "medium", timeStyle: "long", timeZone: "UTC" } : { dateStyle: "medium", timeStyle: "medium" });
