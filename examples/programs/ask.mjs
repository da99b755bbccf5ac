// Asks a model through a gateway, with OpenAI's SDK as it is published:
// node ask.mjs "How long is a minute?"
import OpenAI from 'openai';

const openai = new OpenAI({
  baseURL: `${process.env.GATEWAY ?? 'http://127.0.0.1:7401'}/v1`,
  apiKey: process.env.OPENAI_API_KEY ?? 'none',
  defaultHeaders: { 'x-client-id': process.env.CLIENT ?? 'notes' },
  // The gateway retries.
  maxRetries: 0,
});

const stream = await openai.chat.completions.create({
  model: 'gpt-4o-mini',
  max_tokens: 64,
  stream: true,
  messages: [{ role: 'user', content: process.argv[2] ?? 'How long is a minute?' }],
});
for await (const part of stream) {
  process.stdout.write(part.choices[0]?.delta?.content ?? '');
}
process.stdout.write('\n');
