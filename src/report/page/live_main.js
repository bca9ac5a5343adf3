/* The parts of the page of a run that goes on, and how it follows: it asks the server that it came from, once in a second. */
drawPage([state, tiles, losses, speed, samples]);
part("footer").text(`hone ${data.hone_version || ""} · follows the run from 127.0.0.1 and asks nobody else`);

function show() {
  hideTip();
  state();
  tiles();
  boxes.forEach(f => f());
  samples();
}

async function ask() {
  try {
    const answer = await fetch(`data?seen=${run.version}`, {cache: "no-store"});
    if (answer.status === 200) Object.assign(run, await answer.json(), {gone: false});
    if (answer.status === 200) show();
  } catch (e) {
    const ended = run.state === "finished" || run.state === "stopped" || run.state === "failed";
    if (!run.gone && !ended) {
      run.gone = true;
      show();
    }
    if (ended) return;
  }
  setTimeout(ask, document.hidden ? 5000 : 1000);
}
ask();
