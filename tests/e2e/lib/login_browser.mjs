// The part of a browser that a login needs: follows redirects, keeps cookies, and fills the forms that
// it finds.

const kMaxSteps = 30;

// What servers have set, of any host.
export class Cookies {
  #kept = new Map();

  keep(url, response) {
    for (const line of response.headers.getSetCookie()) {
      const [pair, ...attributes] = line.split(/;\s*/);
      const path = attributes.find((each) => /^path=/i.test(each))?.slice(5) ?? '/';
      const name = pair.slice(0, pair.indexOf('='));
      this.#kept.set(`${url.host} ${path} ${name}`, { host: url.host, path, pair });
    }
  }
  of(url) {
    return [...this.#kept.values()]
      .filter(({ host, path }) => host === url.host && url.pathname.startsWith(path))
      .map(({ pair }) => pair)
      .join('; ');
  }
}

// The first form of a page: {action, fields}. The fields have the values that the page gives them.
function form_of(html) {
  const form = /<form[^>]*action="([^"]+)"[^>]*>([\s\S]*?)<\/form>/.exec(html);
  if (!form) return undefined;
  const fields = {};
  for (const [input] of form[2].matchAll(/<input[^>]*>/g)) {
    const name = /name="([^"]+)"/.exec(input)?.[1];
    if (name) fields[name] = /value="([^"]*)"/.exec(input)?.[1] ?? '';
  }
  return { action: form[1].replaceAll('&amp;', '&'), fields };
}

// Opens `start` and logs in with `answers`, by the names of fields. Returns the address and the text
// of the last page: the first one without a form.
export async function log_in(start, answers) {
  const cookies = new Cookies();
  let url = new URL(start);
  let request = {};
  for (let step = 0; step < kMaxSteps; ++step) {
    const response = await fetch(url, {
      redirect: 'manual',
      ...request,
      headers: { Cookie: cookies.of(url), ...request.headers },
    });
    cookies.keep(url, response);
    request = {};
    const location = response.headers.get('location');
    const page = await response.text();
    if (location) {
      url = new URL(location, url);
      continue;
    }
    const form = form_of(page);
    if (!form) return { url, status: response.status, page };
    for (const name of Object.keys(form.fields)) {
      if (name in answers) form.fields[name] = answers[name];
    }
    url = new URL(form.action, url);
    request = {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(form.fields).toString(),
    };
  }
  throw new Error(`the login does not end; it is at ${url}`);
}
