/* Text to paste somewhere else: a box of code with a button. Pages from a file have no clipboard API in every browser; then the text is
 * selected and copied as by hand. */
function copyByHand(text) {
  const area = document.body.appendChild(document.createElement("textarea"));
  area.value = text;
  area.setAttribute("readonly", "");
  area.className = "off-screen";
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done ? Promise.resolve() : Promise.reject(new Error("the browser copies nothing"));
}

const copyText = text => navigator.clipboard && isSecureContext ? navigator.clipboard.writeText(text).catch(() => copyByHand(text)) : copyByHand(text);

function copyButton(to, text, label) {
  const button = to.append("button").attr("type", "button").attr("class", "copy").text(label || "Copy");
  const say = word => {
    button.text(word);
    setTimeout(() => button.text(label || "Copy"), 1600);
  };
  button.on("click", () => copyText(text()).then(() => say("Copied"), () => say("Select it by hand")));
}

function copyBox(to, text) {
  const box = to.append("div").attr("class", "copy-box");
  box.append("pre").text(text);
  copyButton(box, () => text);
}
