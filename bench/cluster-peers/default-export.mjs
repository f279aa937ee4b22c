/** Of Piscina and tinypool. */
export default ({ a, b }) => a + b;
