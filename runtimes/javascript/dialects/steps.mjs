// @ts-check
/**
 * Steps of the signs by which a dialect is recognised: the lowest step of all dialects wins, two dialects at one step are an
 * error. They are: a list that the platform calls; the name of the function; the names of its parameters; the shape of the whole code; parameters of a
 * function of any name; such parameters without a platform; a name of a platform's parameter among others; this product's own contracts.
 */
export const LISTED = 1;
export const NAMED = 2;
export const PARAMETERS = 3;
export const SHAPED = 4;
export const ANY_NAME = 5;
export const BY_NAME = 6;
export const SOME_NAMES = 7;
export const OWN = 9;
