"use strict";
// What the scripts of all pages begin with: the data of the page, elements, and numbers.
const D = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const make = (tag, props = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    // The page's policy refuses a style attribute; the style itself may be set.
    if (key === "style") node.style.cssText = value;
    else if (key in node) node[key] = value; else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
};
const whole = (n) => n.toLocaleString("en-US");
const brief = (n) => {
  if (n < 1e4) return whole(n);
  const units = ["k", "M", "G", "T", "P"];
  let unit = -1;
  while (n >= 999.5 && unit < 4) { n /= 1000; unit += 1; }
  return n.toPrecision(3).replace(/\.?0+$/, (zeros) => zeros.includes(".") ? "" : zeros) + units[unit];
};
const percent = (part, all) => all > 0 ? (100 * part / all).toFixed(part && part / all < 0.001 ? 2 : 1) + " %" : "–";
const base = (path) => path.slice(path.lastIndexOf("/") + 1);
const pressed = (node, act) => {
  node.addEventListener("click", act);
  node.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(event); }
  });
};
