// Draws the figures in the colours of the page, and again when the screen turns light or dark.
"use strict";

const darkScreen = window.matchMedia("(prefers-color-scheme: dark)");

function axis(given, colours) {
  return {
    gridcolor: colours.line, linecolor: colours.line, zerolinecolor: colours.line,
    automargin: true, ...given,
  };
}

function draw() {
  const style = getComputedStyle(document.documentElement);
  const colours = {
    text: style.getPropertyValue("--text").trim(), line: style.getPropertyValue("--line").trim(),
    card: style.getPropertyValue("--card").trim(),
  };
  figures.forEach((figure, index) => {
    const layout = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false,
      font: { color: colours.text, size: 12 }, margin: { l: 50, r: 12, t: 12, b: 40 },
      hoverlabel: { bgcolor: colours.card, font: { color: colours.text }, namelength: -1 },
      bargap: 0.25, ...figure.layout,
      xaxis: axis(figure.layout.xaxis, colours),
      yaxis: axis({ rangemode: "tozero", ...figure.layout.yaxis }, colours),
    };
    const options = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d"] };
    for (const trace of figure.data) {
      if (trace.error_y) trace.error_y.color = colours.text;
    }
    Plotly.react(`figure-${index}`, figure.data, layout, options);
  });
}

darkScreen.addEventListener("change", draw);
draw();
