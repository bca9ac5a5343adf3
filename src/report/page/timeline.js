/* One step as it happened: a row per thread or stream, a box per event. Drawn on a canvas, since a step can have tens of
 * thousands. What the boxes mean is said by the caller:
 * what: {events: [{track, start, us, kind, name, ...}], tracks, us, words, modes: [[mode, label], ...], color(event, mode),
 *        strong(event): dark box, light text, legend(mode): items, tip(event): more rows} */
const LANE = 19, ROW_GAP = 8, AXIS = 22;

/* Each event gets its lane: one below whatever encloses it on its track. */
function timelineRows(what) {
  const byTrack = d3.nest().key(e => e.track).map(what.events);
  return what.tracks.map(track => {
    const own = (byTrack.get(track.track) || []).sort((a, b) => a.start - b.start || b.us - a.us), open = [];
    for (const e of own) {
      e.end = e.start + e.us;
      while (open.length && open[open.length - 1].end <= e.start + 2e-3) open.pop();
      e.lane = open.length;
      open.push(e);
    }
    return {name: track.name, label: track.label, events: own, lanes: 1 + (d3.max(own, e => e.lane) || 0)};
  });
}

/* The state of the drawing; x maps µs to pixels at the present zoom. */
function makeTimeline(canvas, what) {
  const rows = timelineRows(what), letters = d3.max(rows, r => r.name.length) || 0;
  const view = {canvas, rows, what, letters, mode: what.modes[0][0], width: 0, height: 0, x: null, x0: null};
  let top = AXIS;
  for (const row of rows) {
    row.top = top;
    top += row.lanes * LANE + ROW_GAP;
  }
  view.height = top;
  return view;
}

const labelWidth = view => Math.min(view.width < 500 ? 84 : 130, Math.max(58, 14 + 6 * view.letters));

function drawBoxes(view, ctx, row, paintOf) {
  const [left, right] = view.x.range(), drawn = new Map();        /* lane: right edge of what is drawn there */
  for (const e of row.events) {
    const a = Math.max(left, view.x(e.start)), b = Math.min(right, view.x(e.end));
    if (b < left || a > right || b < (drawn.get(e.lane) || -1) + 0.4) continue;
    const y = row.top + e.lane * LANE, w = Math.max(0.7, b - a - (b - a > 3 ? 1 : 0));
    drawn.set(e.lane, b);
    ctx.fillStyle = paintOf(view.what.color(e, view.mode));
    ctx.fillRect(a, y, w, LANE - 2);
    if (w > 34) {
      ctx.fillStyle = paintOf(view.what.strong(e, view.mode) ? "--on" : "--ink");
      ctx.fillText(e.name.slice(0, Math.floor((w - 6) / 6.2)), a + 4, y + LANE / 2, w - 6);
    }
  }
}

function drawTicks(view, ctx, paintOf) {
  const ticks = view.x.ticks(Math.max(2, view.width / 120)), apart_ms = (ticks[1] - ticks[0]) / 1000 || 1;
  const digits = Math.max(0, -Math.floor(Math.log10(apart_ms)));
  for (const tick of ticks) {
    ctx.fillStyle = paintOf("--line");
    ctx.fillRect(view.x(tick), AXIS - 4, 1, view.height);
    ctx.fillStyle = paintOf("--muted");
    if (view.x(tick) < view.width - 50) ctx.fillText((tick / 1000).toFixed(digits) + " ms", view.x(tick) + 3, AXIS / 2);
  }
}

function drawTimeline(view) {
  const ratio = devicePixelRatio || 1, ctx = view.canvas.getContext("2d"), cache = new Map();
  const paintOf = v => cache.get(v) || cache.set(v, resolved(v)).get(v);
  view.canvas.width = view.width * ratio;
  view.canvas.height = view.height * ratio;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = paintOf("--card");
  ctx.fillRect(0, 0, view.width, view.height);
  ctx.font = "11px system-ui, sans-serif";
  ctx.textBaseline = "middle";
  drawTicks(view, ctx, paintOf);
  for (const row of view.rows) {
    drawBoxes(view, ctx, row, paintOf);
    ctx.fillStyle = paintOf("--card");
    ctx.fillRect(0, row.top, labelWidth(view) - 2, row.lanes * LANE);
    ctx.fillStyle = paintOf("--muted");
    ctx.fillText(row.name, 6, row.top + LANE / 2, labelWidth(view) - 12);
  }
}

function timelineAt(view, px, py) {
  const row = view.rows.find(r => py >= r.top && py < r.top + r.lanes * LANE);
  if (!row || px < labelWidth(view)) return null;
  const lane = Math.floor((py - row.top) / LANE), at = view.x.invert(px), slack = view.x.invert(px + 1) - at;
  const own = row.events.filter(e => e.lane === lane);
  const i = d3.bisector(e => e.start).right(own, at) - 1;
  return [own[i], own[i + 1]].find(e => e && e.start - slack <= at && e.end + slack >= at) || null;
}

function timelineTip(view) {
  const [px, py] = d3.mouse(view.canvas), e = timelineAt(view, px, py);
  if (!e) {
    hideTip();
    return;
  }
  showTip(e.name, [["starts at", time(e.start)], ["takes", time(e.us)]].concat(view.what.tip(e)), pointer());
}

/* Drag moves, the wheel with Ctrl zooms (alone it scrolls the page), keys and buttons do both. */
function timelineZoom(view, redraw) {
  const target = d3.select(view.canvas);
  const zoom = d3.zoom().scaleExtent([1, 5000]).filter(() => {
    const e = d3.event;
    if (e.type === "wheel") return e.ctrlKey || e.metaKey;
    if (e.type === "touchstart") return e.touches.length > 1 || d3.zoomTransform(view.canvas).k > 1;
    return !e.button;
  }).on("zoom", redraw);
  target.call(zoom).style("touch-action", "pan-y").on("keydown", () => {
    const key = d3.event.key, step = view.width / 5 / d3.zoomTransform(view.canvas).k;
    if (key === "ArrowLeft") zoom.translateBy(target, step, 0);
    else if (key === "ArrowRight") zoom.translateBy(target, -step, 0);
    else if (key === "+" || key === "=") zoom.scaleBy(target, 1.5);
    else if (key === "-") zoom.scaleBy(target, 1 / 1.5);
    else if (key === "0") zoom.transform(target, d3.zoomIdentity);
    else return;
    d3.event.preventDefault();
  });
  return {
    by: k => zoom.scaleBy(target, k), all: () => zoom.transform(target, d3.zoomIdentity),
    size: () => zoom.extent([[labelWidth(view), 0], [view.width, view.height]])
      .translateExtent([[labelWidth(view), 0], [view.width, view.height]]),
  };
}

function drawTimelinePart(to, what) {
  if (!what.events.length) {
    note(to, "No events were recorded.");
    return;
  }
  note(to, what.words + " Drag to move; Ctrl and wheel, the buttons or + and − zoom.");
  const controls = to.append("div").attr("class", "controls"), legendBox = to.append("div"), box = to.append("div");
  const canvas = box.append("canvas").attr("tabindex", 0).attr("role", "img")
    .attr("aria-label", `Timeline of ${what.events.length} events on ${what.tracks.length} rows; ` +
      "arrow keys move, plus and minus zoom, 0 shows all");
  const view = makeTimeline(canvas.node(), what);
  canvas.style("height", view.height + "px");
  const redraw = () => {
    view.x = d3.zoomTransform(view.canvas).rescaleX(view.x0);
    drawTimeline(view);
  };
  const zoom = timelineZoom(view, redraw), drawLegend = () => legend(legendBox.text(""), what.legend(view.mode));
  choose(controls, "Colour", what.modes, view.mode, mode => {
    view.mode = mode;
    drawLegend();
    redraw();
  });
  const buttons = controls.append("span").attr("class", "buttons").attr("role", "group").attr("aria-label", "Zoom");
  for (const [text, label, act] of [["−", "Zoom out", () => zoom.by(1 / 2)], ["+", "Zoom in", () => zoom.by(2)],
                                    ["Whole step", "Whole step", zoom.all]])
    buttons.append("button").attr("type", "button").attr("aria-label", label).text(text).on("click", act);
  drawLegend();
  canvas.on("mousemove", () => timelineTip(view)).on("mouseleave", hideTip);
  whenSized(box.node(), width => {
    view.width = width;
    view.x0 = d3.scaleLinear().domain([0, what.us || 1]).range([labelWidth(view), width - 4]);
    zoom.size();
    zoom.all();
    redraw();
  });
  themeChanged.push(redraw);
}
