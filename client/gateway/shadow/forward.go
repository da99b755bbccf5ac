package shadow

import (
	"net/http"
	"net/http/httputil"
	"net/url"
)

// between are headers that a reverse proxy of the standard library takes away.
var between = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

// Forward sends the request to an address as it came, and passes on what comes as it is. change is
// for headers that the address wants and may be nil. What can't be reached is 502.
func (c *Call) Forward(w http.ResponseWriter, to *url.URL, change func(http.Header)) {
	proxy := httputil.ReverseProxy{
		Transport: c.mirror.config.Next, FlushInterval: -1,
		ErrorLog: c.mirror.config.Proxy.ErrorLog,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL, p.Out.Host = to, ""
			for _, name := range between {
				if values := p.In.Header[name]; values != nil {
					p.Out.Header[name] = values
				}
			}
			if change != nil {
				change(p.Out.Header)
			}
		},
		ModifyResponse: func(answer *http.Response) error {
			c.answered(answer)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			c.tell(nil, http.StatusBadGateway, err)
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	proxy.ServeHTTP(w, c.request)
}

// answered copies what comes. What becomes another protocol has no body to copy.
func (c *Call) answered(answer *http.Response) {
	copied := *answer
	// The connection writes to it when the body has ended.
	copied.Trailer = nil
	copied.Header = answer.Header.Clone()
	if answer.StatusCode == http.StatusSwitchingProtocols {
		c.tape.finish(errUpgraded)
	} else {
		answer.Body = &taping{answer.Body, c.tape}
	}
	c.tell(&copied, answer.StatusCode, nil)
}
