/** Faults that the package once had, as changes of its text: the simulation has to find each. */

export const mutants = {};
