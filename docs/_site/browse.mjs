// Opens every page of the built site in Chromium, at two widths, light and dark, without a network:
//
//   make docs-check
//   make reports-check     the same for the reports that reports.py has made
//
// With SCREENSHOTS=FOLDER it keeps a picture of every page. Fails on a script's error, a request that leaves the folder, a page wider than its window, and a
// serious or critical finding of axe-core. Other HTML files, such as a report, can be named after it.

import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";

// Charts are drawn when they come near the window.
const seen = async () => {
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  for (const place of document.querySelectorAll(".chart")) {
    place.scrollIntoView();
    for (let k = 0; k < 50 && !place.querySelector(".main-svg") && !place.hidden; k++) await pause(100);
  }
  for (const button of document.querySelectorAll("button.axis")) {
    button.click();
    await pause(50);
    button.click();
  }
  window.scrollTo(0, 0);
  await pause(100);
  return [...document.querySelectorAll(".chart")].filter((place) => !place.querySelector(".main-svg")).length;
};
const pictures = process.env.SCREENSHOTS;
if (pictures) mkdirSync(pictures, { recursive: true });

const WIDTHS = [1280, 390];
const SCHEMES = ["light", "dark"];

const require = createRequire(join(process.cwd(), "node_modules", "x"));
const puppeteer = require("puppeteer-core");
const axe = require.resolve("axe-core/axe.min.js");

const site = resolve(process.argv[2]);
const named = process.argv.slice(3).map((file) => resolve(file));
const found = readdirSync(site, { recursive: true }).map(String);
const pages = named.length
  ? named
  : found.filter((file) => file.endsWith(".html") && !file.startsWith("_")).map((file) => join(site, file));

const paths = ["/usr/bin/chromium", "/usr/bin/google-chrome", process.env.CHROMIUM ?? ""];
const browser = await puppeteer.launch({
  executablePath: paths.find((path) => existsSync(path)),
  args: ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"],
});
const problems = new Map();
let opened = 0;

function note(kind, where, text) {
  const key = `${kind}: ${text}`;
  if (!problems.has(key)) {
    problems.set(key, []);
    console.log(`${where}: ${key}`);
  }
  problems.get(key).push(where);
}

const page = await browser.newPage();
let here = "";
page.on("pageerror", (error) => note("script", here, error.message));
page.on("console", (message) => {
  if (message.type() === "error") note("console", here, message.text());
});
page.on("request", (request) => {
  if (!/^(file|data|blob):/.test(request.url())) note("request", here, request.url());
});

for (const file of pages.sort()) {
  for (const [place, width] of WIDTHS.entries()) {
    here = `${relative(site, file)} at ${width}`;
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: SCHEMES[place] }]);
    await page.setViewport({ width, height: 900 });
    await page.goto(pathToFileURL(file).href, { waitUntil: "load" });
    const missing = await page.evaluate(seen);
    if (missing) note("chart", here, `${missing} not drawn`);
    const wide = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    if (wide > 1) note("layout", here, "wider than its window");
    await page.addScriptTag({ path: axe });
    const { violations } = await page.evaluate(() => window.axe.run({ preload: false }));
    for (const each of violations) {
      if (each.impact !== "serious" && each.impact !== "critical") continue;
      const nodes = each.nodes.slice(0, 2).map((node) => node.html.slice(0, 140));
      note(`axe ${each.id}`, here, `${each.help}\n    ${nodes.join("\n    ")}`);
    }
    if (pictures) {
      const name = `${relative(site, file).replaceAll("/", "-")}-${width}-${SCHEMES[place]}.png`;
      await page.screenshot({ path: join(pictures, name), fullPage: true });
    }
    opened += 1;
  }
}

// Search, as a reader uses it.
if (!named.length && existsSync(join(site, "search.html"))) {
  here = "search.html";
  await page.goto(`${pathToFileURL(join(site, "search.html")).href}?q=clip_norm`, { waitUntil: "load" });
  await page.waitForSelector("ul.search li", { timeout: 15000 }).catch(() => note("search", here, "no result"));
}
await browser.close();

for (const [text, places] of problems) {
  console.log(`${text}\n  on ${places.length}: ${places.slice(0, 3).join(", ")}`);
}
console.log(`${pages.length} pages opened ${opened} times, ${problems.size} kinds of problems`);
process.exit(problems.size ? 1 : 0);
