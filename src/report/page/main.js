/* Draws the page, part by part, and follows the theme: dark mode as the system says, light while printing. The lists of
 * parts are in profile_main.js, trace_main.js, tune_main.js, forget_main.js and simulate_main.js. */
const themeChanged = [];

function followTheme() {
  const redraw = () => themeChanged.forEach(f => f());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("beforeprint", () => {
    document.documentElement.setAttribute("data-theme", "light");
    d3.selectAll("details").attr("open", "");
    redraw();
  });
  addEventListener("afterprint", () => {
    document.documentElement.removeAttribute("data-theme");
    redraw();
  });
}

function navigation() {
  d3.selectAll("main > section").each(function () {
    const title = this.id === "overview" ? "Overview" : this.querySelector("h2").textContent;
    part("nav").append("li").append("a").attr("href", "#" + this.id).text(title);
  });
}

/* A part may take its section away, so that the list of sections is made last. */
function drawPage(parts) {
  parts.forEach(draw => draw());
  navigation();
  followTheme();
  addEventListener("scroll", hideTip, {passive: true});
  addEventListener("keydown", e => { if (e.key === "Escape") hideTip(); });
  part("footer").text(`hone ${data.hone_version || ""} · this file is complete and loads nothing`);
}
