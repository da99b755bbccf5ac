#!/bin/sh
# Asks a model through a gateway: sh ask.sh "How long is a minute?"
set -eu
question=${1:-How long is a minute?}
printf '{"model": "gpt-4o-mini", "max_tokens": 64, "messages": [{"role": "user", "content": "%s"}]}' "$question" |
  curl -sS --fail-with-body "${GATEWAY:-http://127.0.0.1:7401}/v1/chat/completions" \
    -H "x-client-id: ${CLIENT:-notes}" -H "Authorization: Bearer ${OPENAI_API_KEY:-none}" \
    -H "Content-Type: application/json" --data-binary @-
