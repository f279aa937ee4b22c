#include <allstop/allstop.h>

/* Exits with 0: the view of a text has the text's length. */
int main(void) { return allstop_str("four").size == 4 ? 0 : 1; }
