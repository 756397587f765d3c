// CometD's own Java client while the server restarts. Speaks with the test as js/run.js does.
import jakarta.websocket.ContainerProvider;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.cometd.bayeux.Channel;
import org.cometd.bayeux.Message;
import org.cometd.bayeux.client.ClientSessionChannel.MessageListener;
import org.cometd.client.BayeuxClient;
import org.cometd.client.ext.AckExtension;
import org.cometd.client.http.jetty.JettyHttpClientTransport;
import org.cometd.client.transport.ClientTransport;
import org.cometd.client.websocket.jakarta.WebSocketTransport;
import org.eclipse.jetty.client.HttpClient;
import org.eclipse.jetty.util.ajax.JSON;

public class Restarts {
    private static final long TIMEOUT_S = 30;
    private static final BufferedReader TOLD = new BufferedReader(new InputStreamReader(System.in));

    public static void main(String[] args) throws Exception {
        System.out.println("comesBack");
        for (String line = TOLD.readLine(); line != null; line = TOLD.readLine()) {
            Map<?, ?> context = (Map<?, ?>)((Map<?, ?>)new JSON().fromJSON(line)).get("context");
            try {
                comesBack((String)context.get("url"), (String)context.get("transport"),
                    context.get("root") + "/restarts", ((Number)context.get("rounds")).intValue());
            } catch (Throwable failure) {
                failure.printStackTrace();
                System.exit(1);
            }
            System.out.println("@end");
        }
        System.exit(0);
    }

    private static void comesBack(String url, String transport, String channel, int rounds)
        throws Exception {
        Person named = new Person(url, transport, channel, Map.of("session", "java/1"));
        Person plain = new Person(url, transport, channel, null);
        named.isThere("a named session");
        plain.isThere("a session without a name");
        int published = 0;
        for (int round = 0; round < rounds; ++round) {
            ask("restart the server");
            named.isThere("a named session");
            ask("somebody is back");
            plain.isThere("a session without a name");
            ask("somebody is back");
            // One before the server stopped, one right after its start, one now.
            ask("publish");
            published += 3;
            plain.hearsUntil(published - 1);
        }
        List<Integer> all = IntStream.range(0, published).boxed().toList();
        List<Integer> heard = named.hearsUntil(published - 1);
        if (!heard.equals(all)) {
            throw new AssertionError("the named session heard " + heard);
        }
        named.client.disconnect(TIMEOUT_S * 1000);
        plain.client.disconnect(TIMEOUT_S * 1000);
    }

    /** Asks the test outside for something that only it can do, and waits until it is done. */
    private static void ask(String request) throws IOException {
        System.out.println("@" + request);
        TOLD.readLine();
    }

    private static <T> T take(BlockingQueue<T> queue, String what) throws InterruptedException {
        T item = queue.poll(TIMEOUT_S, TimeUnit.SECONDS);
        if (item == null) {
            throw new AssertionError("waited in vain for " + what);
        }
        return item;
    }

    /** A client, and what it notices. */
    private static class Person {
        final BayeuxClient client;
        private final BlockingQueue<Integer> inbox = new LinkedBlockingQueue<>();
        private final BlockingQueue<Message> returns = new LinkedBlockingQueue<>();
        private boolean isAway = true;

        Person(String url, String transport, String channel, Map<String, Object> delivery)
            throws Exception {
            client = new BayeuxClient(url, transportOf(transport));
            client.setOption(BayeuxClient.BACKOFF_INCREMENT_OPTION, 100L);
            client.setOption(BayeuxClient.MAX_BACKOFF_OPTION, 400L);
            client.getChannel(Channel.META_HANDSHAKE).addListener((MessageListener)(c, reply) -> {
                if (reply.isSuccessful()) {
                    client.getChannel(channel).subscribe((MessageListener)(any, message) ->
                        inbox.add(((Number)message.getData()).intValue()));
                }
            });
            client.getChannel(Channel.META_CONNECT).addListener((MessageListener)(c, reply) -> {
                if (reply.isSuccessful() && isAway) {
                    returns.add(reply);
                }
                isAway = !reply.isSuccessful();
            });
            if (delivery == null) {
                client.handshake();
            } else {
                // The extension adds to it.
                Map<String, Object> ext = new HashMap<>(Map.of("delivery", delivery));
                client.addExtension(new AckExtension());
                client.handshake(new HashMap<>(Map.of("ext", ext)));
            }
        }

        private static ClientTransport transportOf(String name) throws Exception {
            if (name.equals("websocket")) {
                return new WebSocketTransport(null, null, ContainerProvider.getWebSocketContainer());
            }
            HttpClient http = new HttpClient();
            http.start();
            return new JettyHttpClientTransport(null, http);
        }

        void isThere(String who) throws InterruptedException {
            take(returns, "the return of " + who);
        }

        List<Integer> hearsUntil(int last) throws InterruptedException {
            List<Integer> heard = new ArrayList<>();
            while (heard.isEmpty() || heard.get(heard.size() - 1) != last) {
                heard.add(take(inbox, "message " + last));
            }
            return heard;
        }
    }
}
