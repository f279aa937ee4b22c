/** The worker module for Piscina and tinypool. */
export default ({ a, b }) => a + b;
