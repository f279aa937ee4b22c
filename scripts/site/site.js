// On narrow screens typedoc's button of the menu listens to the pointer only: here to the keyboard.
// Enter in the search opens the first result.
const menu = document.querySelector('#tsd-toolbar-menu-trigger');
const press = (target, type) => target.dispatchEvent(new MouseEvent(type, { bubbles: true }));
const open = () => document.documentElement.classList.contains('has-menu');
menu.setAttribute('role', 'button');
menu.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' && event.key !== ' ') return;
  event.preventDefault();
  press(menu, 'mousedown');
  press(menu, 'mouseup');
  document.querySelector('.col-sidebar :is(a, summary)').focus();
});
document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || !open()) return;
  press(document.body, 'mousedown');
  press(document.body, 'mouseup');
  menu.focus();
});
document.querySelector('#tsd-search-input').addEventListener('keydown', (event) => {
  const results = document.querySelector('#tsd-search-results');
  if (event.key === 'Enter' && !results.querySelector('[aria-selected=true]'))
    results.querySelector('a')?.click();
});
