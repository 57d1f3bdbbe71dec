"use strict";
function drawCharts() {
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const narrow = window.matchMedia("(max-width: 46rem)");
  const coarse = window.matchMedia("(pointer: coarse)").matches;
  const drawn = [];

  if (typeof Plotly === "undefined") {
    for (const note of document.querySelectorAll(".no-charts")) note.hidden = false;
    for (const place of document.querySelectorAll(".chart")) place.hidden = true;
    return;
  }

  function ink(name) {
    return getComputedStyle(root).getPropertyValue("--" + name).trim();
  }

  // A copy of a figure with "@name" colours replaced by the page's inks of the moment.
  function inked(value, key) {
    if (Array.isArray(value)) {
      if (key === "colorscale") return value.map(([at, c]) => [at, inked(c, "color")]);
      return value.length && typeof value[0] === "object" && value[0] !== null && !Array.isArray(value[0])
        ? value.map((item) => inked(item))
        : value;
    }
    if (value !== null && typeof value === "object") {
      const copy = {};
      for (const name of Object.keys(value)) copy[name] = inked(value[name], name);
      return copy;
    }
    return key === "color" && String(value).startsWith("@") ? ink(value.slice(1)) : value;
  }

  function dressed(figure) {
    const { data, layout } = inked(figure);
    const axis = {
      gridcolor: ink("grid"), linecolor: ink("rule"), zerolinecolor: ink("rule"),
      automargin: true, fixedrange: coarse, ticks: "",
    };
    const base = {
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: ink("muted") },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 8, r: 10, t: 34, b: 8 },
      hovermode: "x unified",
      hoverlabel: { bgcolor: ink("tint"), bordercolor: ink("rule"), font: { color: ink("text") } },
      legend: { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom", font: { size: 12 } },
      dragmode: coarse ? false : "zoom",
      showlegend: data.length > 1,
      autosize: true,
    };
    const result = Object.assign(base, layout);
    for (const side of ["xaxis", "yaxis"]) {
      result[side] = Object.assign({}, axis, layout[side]);
      result[side].title = Object.assign({ standoff: 8 }, layout[side].title);
    }
    if (result.xaxis.showgrid === undefined) result.xaxis.showgrid = false;
    return [data, result];
  }

  // A chart is drawn when it comes near the window, so that a page with many opens at once.
  const near = new Set();
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      watcher.unobserve(entry.target);
      near.add(entry.target);
      draw([entry.target]);
    }
  }, { rootMargin: "300px" });

  function draw(places) {
    for (const [place, figure] of drawn) {
      if (!places.includes(place)) continue;
      const [data, layout] = dressed(figure);
      Plotly.react(place, data, layout, {
        responsive: true, displaylogo: false, displayModeBar: false, doubleClick: "reset+autosize",
      });
    }
  }

  // A button that puts the chart on the other kind of axis, and back.
  function offerAxis(place, figure) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "axis";
    const say = () => {
      button.textContent = figure.other_axis.type === "log" ? "Logarithmic axis" : "Linear axis";
    };
    button.addEventListener("click", () => {
      [figure.layout.yaxis, figure.other_axis] = [figure.other_axis, figure.layout.yaxis];
      say();
      draw([place]);
    });
    say();
    place.before(button);
  }

  for (const place of document.querySelectorAll(".chart")) {
    const figure = figures[place.dataset.figure];
    if (figure.layout.height && !narrow.matches) place.style.height = figure.layout.height + "px";
    delete figure.layout.height;
    drawn.push([place, figure]);
    if (figure.other_axis) offerAxis(place, figure);
    watcher.observe(place);
  }
  const scheme = window.matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", () => draw([...near]));

  // On paper: light inks, and charts as wide as the sheet.
  function paper(on) {
    root.classList.toggle("paper", on);
    draw(drawn.map(([place]) => place));
    for (const [place] of drawn) Plotly.Plots.resize(place);
  }
  window.addEventListener("beforeprint", () => paper(true));
  window.addEventListener("afterprint", () => paper(false));
}

// In a page that is one file, plotly's script is compressed.
async function unpacked(packed) {
  const bytes = Uint8Array.from(atob(packed.textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(stream).text();
  document.head.append(script);
}

const packed = document.getElementById("packed");
if (packed) unpacked(packed).then(drawCharts, drawCharts);
else drawCharts();
