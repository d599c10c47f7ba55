// What a keyboard and a screen reader need beyond mdBook's own script.

// Code that is wider than the page can be scrolled without a mouse.
for (const code of document.querySelectorAll("pre, pre > code, .table-wrapper")) {
  code.setAttribute("tabindex", "0");
}

// The label that opens the table of contents is a button to everybody else.
const toggle = document.querySelector("#mdbook-sidebar-toggle, #sidebar-toggle");
if (toggle) {
  toggle.setAttribute("role", "button");
  toggle.setAttribute("tabindex", "0");
  toggle.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    toggle.click();
  });
}
