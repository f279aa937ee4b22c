// On narrow screens typedoc's button of the menu listens to the pointer only: here to the keyboard.
// The menu closes when the keyboard leaves it. Enter in the search opens the first result.
const menu = document.querySelector('#tsd-toolbar-menu-trigger');
const sidebar = document.querySelector('.col-sidebar');
const press = (target, type) => target.dispatchEvent(new MouseEvent(type, { bubbles: true }));
const open = () => document.documentElement.classList.contains('has-menu');
menu.setAttribute('role', 'button');
menu.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' && event.key !== ' ') return;
  event.preventDefault();
  press(menu, 'mousedown');
  press(menu, 'mouseup');
  sidebar.querySelector('a, summary').focus();
});
const close = () => {
  press(document.body, 'mousedown');
  press(document.body, 'mouseup');
};
document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || !open()) return;
  close();
  menu.focus();
});
sidebar.addEventListener('focusout', ({ relatedTarget: next }) => {
  if (open() && next !== null && !sidebar.contains(next)) close();
});
document.querySelector('#tsd-search-input').addEventListener('keydown', (event) => {
  const results = document.querySelector('#tsd-search-results');
  if (event.key === 'Enter' && !results.querySelector('[aria-selected=true]'))
    results.querySelector('a')?.click();
});
