import { NAMED } from './steps.mjs';

export const dialect = {
  contract: 'acme-scores',
  entries: ['rate'],
  takesOneObject: true,
  infer: (candidate, name) => (name === 'rate' ? { step: NAMED, reason: candidate.label } : null),
};
