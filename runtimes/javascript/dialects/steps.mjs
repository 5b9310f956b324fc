// @ts-check
/**
 * Ranks (steps) of the signs by which a dialect is recognised: the dialect with the lowest step is chosen, and two dialects with the same step are an
 * error. The signs, the most certain first: a list of evaluators that the code passes to the platform; the name of the function; the names of its
 * parameters; the shape of the whole code; the parameters of a function with any name; parameter names that show their values but belong to no
 * platform; one parameter name of a platform among other names; the parameters of this product's own contracts.
 */
export const LISTED = 1;
export const NAMED = 2;
export const PARAMETERS = 3;
export const SHAPED = 4;
export const ANY_NAME = 5;
export const BY_NAME = 6;
export const SOME_NAMES = 7;
export const OWN = 9;
