// Errors of manifests as text.

import type { LineError } from "../server/answers";

export function errorText(error: LineError): string {
  return error.field ? `${error.field}: ${error.message}` : error.message;
}
