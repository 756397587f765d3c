// CometD's own Java client while the server restarts. Speaks with the test as js/run.js does.
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.IntStream;
import org.cometd.bayeux.Channel;
import org.cometd.bayeux.Message;
import org.cometd.bayeux.client.ClientSessionChannel.MessageListener;
import org.cometd.client.BayeuxClient;
import org.cometd.client.ext.AckExtension;

public class Restarts {
    public static void main(String[] args) throws Exception {
        Told.play("comesBack", context ->
            comesBack((String)context.get("url"), (String)context.get("transport"),
                context.get("root") + "/restarts", ((Number)context.get("rounds")).intValue()));
    }

    private static void comesBack(String url, String transport, String channel, int rounds)
        throws Exception {
        Person named = new Person(url, transport, channel, Map.of("session", "java/1"));
        Person plain = new Person(url, transport, channel, null);
        named.isThere("a named session");
        plain.isThere("a session without a name");
        int published = 0;
        for (int round = 0; round < rounds; ++round) {
            Told.ask("restart the server");
            named.isThere("a named session");
            Told.ask("somebody is back");
            plain.isThere("a session without a name");
            Told.ask("somebody is back");
            // One before the server stopped, one right after its start, one now.
            Told.ask("publish");
            published += 3;
            plain.hearsUntil(published - 1);
        }
        List<Integer> all = IntStream.range(0, published).boxed().toList();
        List<Integer> heard = named.hearsUntil(published - 1);
        if (!heard.equals(all)) {
            throw new AssertionError("the named session heard " + heard);
        }
        named.client.disconnect(Told.TIMEOUT_S * 1000);
        plain.client.disconnect(Told.TIMEOUT_S * 1000);
    }

    /** A client, and what it notices. */
    private static class Person {
        final BayeuxClient client;
        private final BlockingQueue<Integer> inbox = new LinkedBlockingQueue<>();
        private final BlockingQueue<String> returns = new LinkedBlockingQueue<>();
        // It subscribes by a connection of its own, so the first connect may be answered before.
        private final Set<String> lacking = new HashSet<>(Set.of("connect", "subscribe"));

        Person(String url, String transport, String channel, Map<String, Object> delivery)
            throws Exception {
            client = new BayeuxClient(url, Told.transportOf(transport));
            client.setOption(BayeuxClient.BACKOFF_INCREMENT_OPTION, 100L);
            client.setOption(BayeuxClient.MAX_BACKOFF_OPTION, 400L);
            client.getChannel(Channel.META_HANDSHAKE).addListener((MessageListener)(c, reply) -> {
                if (reply.isSuccessful()) {
                    lose("subscribe");
                    client.getChannel(channel).subscribe(
                        (any, message) -> inbox.add(((Number)message.getData()).intValue()),
                        answer -> note("subscribe", answer));
                }
            });
            client.getChannel(Channel.META_CONNECT).addListener(
                (MessageListener)(c, reply) -> note("connect", reply));
            if (delivery == null) {
                client.handshake();
            } else {
                // The extension adds to it.
                Map<String, Object> ext = new HashMap<>(Map.of("delivery", delivery));
                client.addExtension(new AckExtension());
                client.handshake(new HashMap<>(Map.of("ext", ext)));
            }
        }

        private void note(String what, Message reply) {
            if (reply.isSuccessful()) {
                gain(what);
            } else {
                lose(what);
            }
        }

        private synchronized void gain(String what) {
            if (lacking.remove(what) && lacking.isEmpty()) {
                returns.add(what);
            }
        }

        private synchronized void lose(String what) {
            lacking.add(what);
        }

        void isThere(String who) throws InterruptedException {
            Told.take(returns, "the return of " + who);
        }

        List<Integer> hearsUntil(int last) throws InterruptedException {
            List<Integer> heard = new ArrayList<>();
            while (heard.isEmpty() || heard.get(heard.size() - 1) != last) {
                heard.add(Told.take(inbox, "message " + last));
            }
            return heard;
        }
    }
}
