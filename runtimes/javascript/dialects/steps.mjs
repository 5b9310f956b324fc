// @ts-check
/**
 * Ranks (steps) of the signs by which a dialect is recognised: the dialect with the lowest step is chosen, and two dialects with the same step are an
 * error. The signs are: a list that the platform calls; the name of the function; the names of its parameters; the shape of the whole code; the parameters of a
 * function with any name; names that show what each parameter gets, for no particular platform; one parameter name of a platform among other names; this product's own contracts.
 */
export const LISTED = 1;
export const NAMED = 2;
export const PARAMETERS = 3;
export const SHAPED = 4;
export const ANY_NAME = 5;
export const BY_NAME = 6;
export const SOME_NAMES = 7;
export const OWN = 9;
